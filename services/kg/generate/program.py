"""Programs written by a language model under the decoding grammar (db3, section 3.2), examples chosen per question."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from services.kg.generate.base import PROMPTS, RESERVE_S, Written, conversation, domain_question
from services.kg.generate.examples import Example, Library
from services.kg.generate.ground import ground
from services.kg.generate.spans import Spotter, spots_in
from services.kg.language.catalogue import Catalogue, Domain
from services.kg.language.decoding import decoding_grammar, schema_text
from services.kit.budget import Budget
from services.kit.llm import LLM, Constraint, Message, log_missing

MAX_TOKENS = 120
_BASE, _ADAPTED = PROMPTS.template("program"), PROMPTS.template("program_adapter")


@dataclass(frozen=True, slots=True)
class ProgramWriter:
    """Asks the generator for a program."""

    llm: LLM  # the generator
    catalogue: Catalogue  # what may be called
    library: Library  # worked examples
    k: int = 4  # how many a question is shown
    adapter: str = "kg-api"  # the fine-tuned one, where the generator serves it
    spotter: Spotter | None = None  # finds the names that are masked before examples are looked for

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`."""
        spots = await spots_in(query, domain, self.spotter)
        # The adapter is trained on the domains that come with the service; of another it knows no function.
        adapter = self.adapter if self.catalogue.domains[domain].bundled else ""
        if adapter and await self.llm.serves(adapter, allow_s=budget.allow(reserve_s=RESERVE_S)):
            messages = adapter_messages(
                query, query_time=query_time, domain=self.catalogue.domains[domain], feedback=feedback
            )
        else:
            if adapter:
                log_missing(adapter, self.llm.model)
            examples = await self.library.nearest(query, domain=domain, k=self.k, names=[spot.text for spot in spots])
            messages = self.messages(query, examples, query_time=query_time, domain=domain, feedback=feedback)
        completion = await self.llm.chat(
            messages,
            max_tokens=MAX_TOKENS,
            allow_s=budget.allow(reserve_s=RESERVE_S),
            adapter=adapter,
            constraint=Constraint(grammar=decoding_grammar(self.catalogue, domain)),
        )
        program = await asyncio.to_thread(ground, completion.text, query, self.catalogue, domain, spots)
        return Written(program, "program", completion.prompt_tokens, completion.completion_tokens)

    def messages(
        self, query: str, examples: tuple[Example, ...], *, query_time: datetime, domain: str, feedback: str = ""
    ) -> list[Message]:
        """The chat for a base model."""
        system = _BASE.substitute(functions=schema_text(self.catalogue, domain))
        question = domain_question(query, query_time, self.catalogue.domains[domain], feedback)
        return conversation(system, [(one, one.program) for one in examples], question)


def adapter_messages(query: str, *, query_time: datetime, domain: Domain, feedback: str = "") -> list[Message]:
    """The chat for an adapter, which knows the language and the functions from its training.

    It is read many times faster than a base model's chat. Training data is rendered by this very function.
    """
    system = _ADAPTED.substitute(domain=domain.name)
    return conversation(system, [], domain_question(query, query_time, domain, feedback))

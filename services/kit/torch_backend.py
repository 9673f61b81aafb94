"""Any sentence-transformers model on torch: production encoders, GPUs, and bfloat16 on CPUs."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from services.kit.backend import EncoderUsage, Ints, Pass
from services.kit.precision import Precision


class TorchBackend:
    """Runs the model's own modules; `EncoderUsage` overrides the pooling and prompts of its files.

    Raises:
        OSError: there is no such model.
        ValueError: its tokenizer has no fast form, or it has no pooling to change.
    """

    streams = 1
    map = staticmethod(map)

    def __init__(self, place: str, name: str, precision: Precision, usage: EncoderUsage) -> None:
        model: Any = SentenceTransformer(
            place,
            device=precision.device,
            model_kwargs={"dtype": precision.torch_dtype},
            local_files_only=Path(place).is_dir(),
        ).eval()
        backend = getattr(model.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(f"{name} has no fast tokenizer")
        # A copy, because truncation and padding are state of a tokenizer, and the model's must keep its own.
        self.tokenizer = Tokenizer.from_str(backend.to_str())
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(usage.max_length or int(model.max_seq_length or 512))
        if usage.pooling:
            # In place of that of the model's files.
            module = next((module for module in model if hasattr(module, "pooling_mode")), None)
            if module is None:
                raise ValueError(f"{name} has no pooling that could be {usage.pooling!r}")
            module.pooling_mode = usage.pooling
        self._model = model
        self.dimension = int(model.get_embedding_dimension())
        self.nbytes = sum(parameter.nbytes for parameter in model.parameters())
        self.padding_id = int(model.tokenizer.pad_token_id)
        self.prompts: MutableMapping[str, str] = model.prompts

    def run(self, ids: Ints, mask: Ints, *, keep_states: bool) -> Pass:
        device = self._model.device
        with torch.inference_mode():
            output = self._model(
                {"input_ids": torch.from_numpy(ids).to(device), "attention_mask": torch.from_numpy(mask).to(device)}
            )
            vectors = output["sentence_embedding"].float().cpu().numpy()
            states = output["token_embeddings"].float().cpu().numpy() if keep_states else None
        return Pass(vectors, states)

"""GGUF to safetensors, run by the generator environment's interpreter: `python -m services.generator.convert GGUF OUT`.

vLLM serves GGUF through a plugin only, and on a CPU dense bfloat16 is faster than unpacking 4-bit blocks at every step,
so the weights are dequantised once. Kept apart from `prepare` because it alone needs torch and transformers.
"""

import copy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# The token that closes every ChatML turn; an assistant that does not stop there talks to itself.
END_OF_TURN = "<|im_end|>"


def convert(gguf: Path, out: Path) -> None:
    """Write the dense bfloat16 model in `gguf`, its tokenizer and its generation defaults to the folder `out`.

    Prints one line a stage. Raises ValueError when the tokenizer carries no ChatML template or another end token.
    """
    print("loading torch and transformers", flush=True)
    import torch

    # Half of what is called below is untyped, and this file must also check where transformers is not installed.
    transformers: Any = import_module("transformers")
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()

    source = str(gguf.parent)
    print("reading the tokenizer", flush=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=gguf.name)
    if not tokenizer.chat_template or END_OF_TURN not in tokenizer.chat_template:
        raise ValueError(f"{gguf.name}: the tokenizer carries no ChatML chat template")
    if tokenizer.eos_token != END_OF_TURN:
        raise ValueError(
            f"{gguf.name}: generation would end at {tokenizer.eos_token!r}, the template at {END_OF_TURN!r}"
        )

    print("dequantising the weights", flush=True)
    quantised = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf.name, dtype=torch.bfloat16)
    # A model saved from the loaded object would still claim to be GGUF, and vLLM would look for a GGUF kernel.
    config = copy.deepcopy(quantised.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in quantised.state_dict().items()}
    del quantised
    # A frame without memory of its own takes the weights as they are: a copy of a larger model is some GB.
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(weights, strict=True, assign=True)

    print("saving safetensors", flush=True)
    # vLLM takes its sampling defaults and the tokens that end a reply from this file; it must hold nothing else.
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(out)
    # GGUF has no such field, and the tokenizer would accept what the model cannot read.
    tokenizer.model_max_length = config.max_position_embeddings
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:]))

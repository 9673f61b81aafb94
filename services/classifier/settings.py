"""Settings of the classifier."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.classifier.svm import MODEL
from services.kit.cpu import IsaLimit
from services.kit.precision import DtypeSetting
from services.kit.settings import KitSettings, MeshUrls


class ClassifierSettings(KitSettings, MeshUrls):
    classifier_port: int = Field(8003, ge=1024, le=65_535)
    # `svm` needs no generator and takes milliseconds; `auto` asks the generator about what the SVM is unsure of.
    classifier_mode: Literal["svm", "in-context", "auto"] = "svm"
    # A file of `cragmesh classifier train`, with its card.json beside it.
    classifier_model: Path = MODEL
    # The encoder of the model's training: a folder or a hub name; empty is the MiniLM that ships in a package.
    classifier_encoder: str = ""
    # auto picks the fastest format that is exact enough on this device, by a short measurement.
    precision: DtypeSetting = "auto"
    # Pretend an older CPU, to see here how it runs there.
    cpu_isa: IsaLimit = ""
    # One short text keeps no more than one core busy.
    classifier_threads: int = Field(1, ge=1, le=64)
    # Tokens of one batch: larger ones delay the requests that came first.
    classifier_batch_tokens: int = Field(1_024, ge=64, le=1_048_576)
    # Tokens that may wait for the model; more are refused with 429.
    classifier_queue_tokens: int = Field(60_000, ge=1_024, le=100_000_000)
    # Demonstrations for the LLM: the query's nearest neighbours, or random ones as ElectricSheep's.
    classifier_demonstrations: Literal["nearest", "random"] = "nearest"
    # Certainty of the LLM: the probability of one greedy decode, or the share of samples that agree.
    classifier_consistency: Literal["logprob", "vote"] = "logprob"
    # Samples of a vote; vLLM decodes them side by side.
    classifier_samples: int = Field(5, ge=2, le=20)
    # Seconds of the LLM; the SVM's labels stand when it takes longer.
    classifier_llm_cap_s: float = Field(5.0, gt=0, le=30)
    # With less time left than this the LLM is not asked.
    classifier_llm_min_s: float = Field(0.1, gt=0, le=30)

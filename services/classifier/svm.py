"""The SVM of ElectricSheep (section 4.2): sentence embeddings and lexical features, a calibrated linear SVM a head.

Served by NumPy alone; `learn.py` trains it with scikit-learn. A model file is an .npz of plain arrays, never pickle: of
exactly the expected names, types and shapes.
"""

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.classifier.features import MAX_CHARS, NAMES, lexical
from services.classifier.taxonomy import HEADS, Labels, Prediction
from services.kit.files import whole

MODE = "svm"
MODEL = Path(__file__).parent / "model" / "classifier.npz"
CARD = "card.json"
FORMAT = 2
# Of all arrays, unpacked; the shipped model has one MiB.
MAX_MODEL_BYTES = 64 * 1024 * 1024

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indexes = NDArray[np.int64]

WORD = r"(?u)\b\w[\w'-]*\b"
_WORD = re.compile(WORD)
# The encoder reads no other script.
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f]{2,}")
_OTHER = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f]")


class ModelError(Exception):
    """A model file is missing, of another version, or invalid; the message says which."""


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """The training settings of a head; `train` chooses among a few by cross-validation over template groups.

    The weights scale the 0-or-1 features and the tf-idf of word uni- and bigrams beside unit embeddings; 0 leaves them
    out. `c` is the inverse of the regularisation's strength.
    """

    lexical_weight: float = 0.3
    ngram_weight: float = 0.0
    c: float = 0.3


@dataclass(frozen=True, slots=True)
class Familiarity:
    """A question's similarity to the training data, so that certainty fades outside it.

    An SVM's margin grows with the distance to the border, also in directions without training data. The measure is the
    cosine to the nearest mean of a template group.

    Args:
        centroids: unit vectors, shape (groups, d).
        low: at or below this cosine only the labels' frequencies count.
        high: from this cosine on only the SVM counts.
    """

    centroids: Floats
    low: float
    high: float

    def of(self, vectors: Floats, texts: Sequence[str]) -> Doubles:
        """Trust in 0..1 for each question, shape (texts,)."""
        nearest = (vectors @ self.centroids.T).max(axis=1)
        trust = np.clip((nearest - self.low) / max(self.high - self.low, 1e-6), 0, 1)
        return np.where([_readable(text[:MAX_CHARS]) for text in texts], trust, 0.0)


def _readable(text: str) -> bool:
    """Whether there are words, most of them in Latin letters."""
    latin = sum(map(len, _LATIN.findall(text)))
    return latin > len(_OTHER.findall(text))


@dataclass(frozen=True, slots=True)
class Questions:
    """The SVM's input: texts with vectors of shape (texts, d)."""

    texts: Sequence[str]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, indexes: Indexes) -> "Questions":
        return Questions([self.texts[index] for index in indexes], self.vectors[indexes])


@dataclass(frozen=True, slots=True)
class Ngrams:
    """Weights of words and of pairs of words that stand side by side: tf-idf, as scikit-learn computes it.

    `terms` have their indexes among the features, in that order, and `idf` the shape (terms,).
    """

    terms: Mapping[str, int]
    idf: Floats

    def features(self, texts: Sequence[str]) -> Floats:
        """Unit vectors, or zeros without a known term, shape (texts, terms); of a text's first 2,000 characters."""
        rows = np.zeros((len(texts), len(self.terms)), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(text[:MAX_CHARS].lower())
            pairs = map(" ".join, pairwise(words))
            counts = Counter(place for term in (*words, *pairs) if (place := self.terms.get(term)) is not None)
            if counts:
                places = sorted(counts)
                frequencies = np.array([counts[place] for place in places], np.float32)
                values = (np.log(frequencies) + np.float32(1)) * self.idf[places]
                row[places] = values / np.sqrt(np.sum(values * values, dtype=np.float64))
        return rows


@dataclass(slots=True)
class Head:
    """One head: its features, its SVM, and its labels' frequencies.

    Args:
        settings: the weights of the features.
        labels: in the order of the arrays.
        weights: of the features, shape (labels, features).
        biases: shape (labels,).
        slopes, offsets: of the sigmoids that turn margins into probabilities (Platt 1999), shape (labels,) each.
        priors: shares of the training questions, shape (labels,).
        ngrams: None where `settings.ngram_weight` is 0.
        temperature: above 1 it lowers certainty; fitted on real questions, which differ from the templates.
    """

    settings: HeadSettings
    labels: Sequence[str]
    weights: Doubles
    biases: Doubles
    slopes: Doubles
    offsets: Doubles
    priors: Doubles
    ngrams: Ngrams | None = None
    temperature: float = 1.0

    def probabilities(self, questions: Questions) -> Doubles:
        """Shape (texts, labels); rows sum to 1."""
        margins = features(self.settings, questions, self.ngrams) @ self.weights.T + self.biases
        # The exponential of a larger value overflows.
        sigmoids = 1 / (1 + np.exp(np.clip(self.slopes * margins + self.offsets, -700, 700)))
        return tempered(sigmoids / sigmoids.sum(axis=1, keepdims=True), self.temperature)


def features(settings: HeadSettings, questions: Questions, ngrams: Ngrams | None) -> Floats:
    """The input of a head's SVM, shape (texts, features)."""
    blocks = [questions.vectors]
    if settings.lexical_weight:
        blocks.append(lexical(questions.texts) * np.float32(settings.lexical_weight))
    if ngrams is not None:
        blocks.append(ngrams.features(questions.texts) * np.float32(settings.ngram_weight))
    return np.hstack(blocks)


def tempered(probabilities: Doubles, temperature: float) -> Doubles:
    """Probabilities with their logits divided by a temperature (Guo et al. 2017), rows summing to 1."""
    if temperature == 1:
        return probabilities
    powers = np.clip(probabilities, 1e-9, 1) ** (1 / temperature)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Svm:
    """All heads, and the name of the encoder on whose vectors they were trained."""

    heads: Mapping[str, Head]
    familiarity: Familiarity
    encoder: str

    def predict(self, questions: Questions) -> list[Labels]:
        """Labels of each question, with calibrated probabilities, outside the training data the frequencies."""
        if not len(questions):
            return []
        trust = self.familiarity.of(questions.vectors, questions.texts)
        rows: list[dict[str, Prediction]] = [{} for _ in questions.texts]
        for name, head in self.heads.items():
            mixed = trust[:, None] * head.probabilities(questions) + (1 - trust)[:, None] * head.priors
            for row, probabilities in zip(rows, mixed, strict=True):
                by_label = dict(zip(head.labels, map(float, probabilities), strict=True))
                row[name] = Prediction({label: by_label.get(label, 0.0) for label in HEADS[name]}, MODE)
        return list[Labels](rows)

    def save(self, path: Path) -> None:
        """Replace an .npz file, whole or not at all."""
        arrays: dict[str, NDArray[Any]] = {
            "format": np.array(FORMAT),
            "encoder": np.array(self.encoder),
            "centroids": self.familiarity.centroids,
            "familiarity": np.array([self.familiarity.low, self.familiarity.high]),
        }
        for name, head in self.heads.items():
            arrays |= {
                f"{name}.settings": np.array(astuple(head.settings)),
                f"{name}.labels": np.array(head.labels),
                f"{name}.weights": head.weights,
                f"{name}.biases": head.biases,
                f"{name}.sigmoids": np.array([head.slopes, head.offsets]),
                f"{name}.priors": head.priors,
                f"{name}.temperature": np.array(head.temperature),
            }
            if head.ngrams is not None:
                arrays |= {f"{name}.terms": np.array(list(head.ngrams.terms)), f"{name}.idf": head.ngrams.idf}
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # no array is called `allow_pickle`


def load(path: Path = MODEL) -> Svm:
    """Read a model file.

    Raises:
        ModelError: it is missing, no .npz file, too large, of another format, or an array is missing, unexpected, of
            another type or shape, or not finite.
    """
    try:
        arrays = _Arrays(_read(path))
        if arrays.take("format", "i").item() != FORMAT:
            raise ValueError("it is of another format")
        centroids = arrays.take("centroids", "f4", -1, -1)
        familiarity = Familiarity(centroids, *map(float, arrays.take("familiarity", "f8", 2)))
        heads = {name: _head(name, arrays, centroids.shape[1]) for name in HEADS}
        svm = Svm(heads, familiarity, str(arrays.take("encoder", "U").item()))
        arrays.end()
    except FileNotFoundError as error:
        raise ModelError(f"there is no model at {path}: run `cragmesh classifier train`") from error
    except (OSError, EOFError, ValueError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise ModelError(f"{path} is no model that may be loaded: {error}; run `cragmesh classifier train`") from error
    return svm


def _read(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
        if sum(member.file_size for member in members) > MAX_MODEL_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_MODEL_BYTES} bytes")
        if len({member.filename for member in members}) < len(members):
            raise ValueError("it has two arrays of a name")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


class _Arrays:
    """A model file's arrays; each is taken once, with a check of its type and shape."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def take(self, name: str, kind: str, *shape: int) -> NDArray[Any]:
        """An array of a kind (NumPy's letter, with the size in bytes) and shape, -1 for any length above 0.

        Raises:
            ValueError: it is missing, or of another type or shape.
        """
        array = self._arrays.pop(name, None)
        if not isinstance(array, np.ndarray):
            raise ValueError(f"it has no {name}")
        fits = len(array.shape) == len(shape) and all(
            length == expected or (expected < 0 < length) for length, expected in zip(array.shape, shape, strict=True)
        )
        if not fits or not array.dtype.str[1:].startswith(kind) or not array.dtype.isnative:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds what is no number")
        return array

    def end(self) -> None:
        """A ValueError where an array was not taken."""
        if self._arrays:
            raise ValueError(f"it has {min(self._arrays)} too many")


def _head(name: str, arrays: _Arrays, width: int) -> Head:
    settings = HeadSettings(*map(float, arrays.take(f"{name}.settings", "f8", 3)))
    labels = [str(label) for label in arrays.take(f"{name}.labels", "U", -1)]
    if len(set(labels)) < len(labels) or not set(labels) <= set(HEADS[name]):
        raise ValueError(f"{name} has the labels {', '.join(labels)}")
    if settings.lexical_weight:
        width += len(NAMES)
    ngrams = None
    if settings.ngram_weight:
        terms = {str(term): place for place, term in enumerate(arrays.take(f"{name}.terms", "U", -1))}
        # A repeated term makes `terms` shorter than `idf`, which raises.
        ngrams = Ngrams(terms, arrays.take(f"{name}.idf", "f4", len(terms)))
        width += len(terms)
    slopes, offsets = arrays.take(f"{name}.sigmoids", "f8", 2, len(labels))
    temperature = float(arrays.take(f"{name}.temperature", "f8").item())
    if temperature <= 0:
        raise ValueError(f"{name} has the temperature {temperature}")
    return Head(
        settings,
        labels,
        weights=arrays.take(f"{name}.weights", "f8", len(labels), width),
        biases=arrays.take(f"{name}.biases", "f8", len(labels)),
        slopes=slopes,
        offsets=offsets,
        priors=arrays.take(f"{name}.priors", "f8", len(labels)),
        ngrams=ngrams,
        temperature=temperature,
    )


def read_thresholds(path: Path) -> dict[str, float]:
    """Certainties below which `auto` asks the LLM, by head, from a model card.

    Raises:
        ModelError: there is no card, or no threshold in 0..1 for a head.
    """
    try:
        values = json.loads(path.read_text("utf-8"))["thresholds"]
        thresholds = {head: float(values[head]) for head in HEADS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} has no thresholds: run `cragmesh classifier train`") from error
    if not all(0 <= value <= 1 for value in thresholds.values()):
        raise ModelError(f"{path} has thresholds outside 0..1")
    return thresholds

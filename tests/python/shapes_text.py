"""Tables shaped like public datasets of text: questions, chats, captions, choices."""
import random

import pyarrow as pa

WORDS = "the tensor of a column has one shape, and every byte of it is checked: größer, 火山, 🙂".split()


def prose(source, max_count=12):
    return " ".join(source.choice(WORDS) for _ in range(source.randrange(max_count)))


def squad(source, rows):
    answers = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])

    def answer(count):
        starts = [source.randrange(900) for _ in range(count)]
        return {"text": [prose(source) for _ in starts], "answer_start": starts}

    return pa.table({
        "id": [f"{source.getrandbits(96):024x}" for _ in range(rows)],
        "title": [prose(source) for _ in range(rows)],
        "context": [prose(source, 80) for _ in range(rows)],
        "question": [prose(source) for _ in range(rows)],
        "answers": pa.array([answer(source.randrange(4)) for _ in range(rows)], answers),
    })


MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])


def messages(source, max_count=5):
    roles = ("system", "user", "assistant")
    return [{"role": roles[i % 3], "content": prose(source)} for i in range(source.randrange(max_count))]


def chat(source, rows):
    return pa.table({"messages": pa.array([messages(source) for _ in range(rows)], pa.list_(MESSAGE))})


def tool_calls(source, rows):
    """Returns chats whose messages have tool calls, images, or nothing."""
    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("function", function)])
    part = pa.struct([("type", pa.string()), ("text", pa.string()), ("image", pa.int32())])
    fields = [("role", pa.string()), ("content", pa.list_(part)), ("tool_calls", pa.list_(call))]
    message = lambda i: {
        "role": "user",
        "content": None if i % 3 == 0 else [{"type": "text", "text": prose(source), "image": None}] * (i % 4),
        "tool_calls": [{"id": str(i), "function": {"name": "f", "arguments": "{}"} if i % 2 else None}] * (i % 3),
    }
    lists = [[message(source.randrange(99)) for _ in range(source.randrange(4))] for _ in range(rows)]
    return pa.table({"messages": pa.array(lists, pa.list_(pa.struct(fields)))})


def preferences(source, rows):
    pairs = lambda: pa.array([messages(source) for _ in range(rows)], pa.list_(MESSAGE))
    return pa.table({
        "prompt": [prose(source) for _ in range(rows)],
        "chosen": pairs(),
        "rejected": pairs(),
        "score_chosen": [source.random() for _ in range(rows)],
        "score_rejected": pa.array([source.random() for _ in range(rows)], pa.float32()),
    })


def captions(source, rows):
    return pa.table({
        "url": [f"https://example.org/{i}.jpg" for i in range(rows)],
        "captions": [[prose(source) for _ in range(5)] for _ in range(rows)],
        "sentids": [[5 * i + k for k in range(5)] for i in range(rows)],
    })


def choices(source, rows):
    """Returns questions with four choices each, and the index of the correct one."""
    return pa.table({
        "question": [prose(source) for _ in range(rows)],
        "subject": pa.array([source.choice(("algebra", "law")) for _ in range(rows)]).dictionary_encode(),
        "choices": [[prose(source) for _ in range(4)] for _ in range(rows)],
        "answer": pa.array([source.randrange(4) for _ in range(rows)], pa.int64()),
    })


def translations(source, rows):
    pair = pa.struct([("de", pa.string()), ("fr", pa.string())])
    values = [{"de": prose(source), "fr": prose(source)} for _ in range(rows)]
    return pa.table({"translation": pa.array(values, pair)})


def tokens(source, rows):
    """Returns token ids of one length and of varying lengths."""
    ragged = [[source.randrange(50_000) for _ in range(source.randrange(40))] for _ in range(rows)]
    even = lambda below: [[source.randrange(below) for _ in range(32)] for _ in range(rows)]
    return pa.table({
        "input_ids": pa.array(even(50_000), pa.list_(pa.int32())),
        "attention_mask": pa.array(even(2), pa.list_(pa.int8())),
        "labels": pa.array(ragged, pa.large_list(pa.int64())),
        "packed": pa.array([[number % 65_536 for number in row] for row in ragged], pa.list_(pa.uint16())),
    })


SHAPES = [squad, chat, tool_calls, preferences, captions, choices, translations, tokens]


def tables():
    for shape in SHAPES:
        yield shape.__name__, shape(random.Random(shape.__name__), 60)

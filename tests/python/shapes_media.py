"""Tables shaped like public datasets of images, audio, objects and robots."""
import random

import pyarrow as pa

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
AUDIO = pa.struct([("bytes", pa.binary()), ("path", pa.string()), ("sampling_rate", pa.int32())])
BOX = pa.list_(pa.float32(), 4)


def image(source):
    """Returns an image that is embedded, or one in a file of its own."""
    if source.random() < 0.3:
        return {"bytes": None, "path": f"images/{source.randrange(99)}.png"}
    return {"bytes": source.randbytes(source.randrange(200)), "path": source.choice((None, "a.png"))}


def images(source, rows):
    several = [[image(source) for _ in range(source.randrange(4))] for _ in range(rows)]
    single = [None if source.random() < 0.2 else image(source) for _ in range(rows)]
    return pa.table({
        "image": pa.array(single, IMAGE),
        "images": pa.array(several, pa.list_(IMAGE)),
        "label": pa.array([source.randrange(10) for _ in range(rows)], pa.int64()),
    })


def audio(source, rows):
    values = [{**image(source), "sampling_rate": 16_000} for _ in range(rows)]
    return pa.table({"audio": pa.array(values, AUDIO), "text": ["spoken"] * rows})


def box(source):
    return [source.random() for _ in range(4)]


def objects_of_lists(source, rows):
    """Returns objects as in COCO, as a struct of lists."""
    fields = [("id", pa.list_(pa.int64())), ("area", pa.list_(pa.float64())), ("bbox", pa.list_(BOX)),
              ("category", pa.list_(pa.int64()))]
    values = []
    for _ in range(rows):
        count = source.randrange(5)
        numbers = [source.randrange(80) for _ in range(count)]
        values.append({"id": numbers, "area": [number / 7 for number in numbers],
                       "bbox": [box(source) for _ in range(count)], "category": numbers})
    return pa.table({"image_id": pa.array(range(rows), pa.int64()), "objects": pa.array(values, pa.struct(fields))})


def lists_of_objects(source, rows):
    """Returns objects as in COCO, as a list of structs with polygons."""
    polygons = pa.list_(pa.list_(pa.float32()))
    fields = pa.struct([("bbox", BOX), ("segmentation", polygons), ("iscrowd", pa.bool_()), ("category", pa.string())])
    polygon = lambda: [source.random() for _ in range(2 * source.randrange(3, 6))]
    thing = lambda: {"bbox": box(source) if source.random() < 0.9 else None,
                     "segmentation": [polygon() for _ in range(source.randrange(3))],
                     "iscrowd": source.random() < 0.1, "category": source.choice(("cat", "dog", None))}
    values = [[thing() for _ in range(source.randrange(4))] for _ in range(rows)]
    return pa.table({"objects": pa.array(values, pa.list_(fields))})


def episodes(source, rows):
    """Returns steps of robots, as in LeRobot."""
    floats = lambda count: [[source.random() for _ in range(count)] for _ in range(rows)]
    frame = pa.struct([("path", pa.string()), ("timestamp", pa.float32())])
    return pa.table({
        "observation.state": pa.array(floats(14), pa.list_(pa.float32(), 14)),
        "action": pa.array(floats(14), pa.list_(pa.float32(), 14)),
        "observation.velocity": pa.array(floats(6), pa.list_(pa.float64())),
        "observation.image": pa.array([{"path": "a.mp4", "timestamp": i / 30} for i in range(rows)], frame),
        "timestamp": pa.array([i / 30 for i in range(rows)], pa.float32()),
        "frame_index": pa.array(range(rows), pa.int64()),
        "episode_index": pa.array([i // 20 for i in range(rows)], pa.int64()),
        "next.done": pa.array([i % 20 == 19 for i in range(rows)]),
        "recorded": pa.array([1_700_000_000_000_000 + i for i in range(rows)], pa.timestamp("us")),
    })


SHAPES = [images, audio, objects_of_lists, lists_of_objects, episodes]


def tables():
    for shape in SHAPES:
        yield shape.__name__, shape(random.Random(shape.__name__), 60)

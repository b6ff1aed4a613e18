"""Write demo/litdata with the LitData library (pip install litdata soundfile Pillow)."""

from __future__ import annotations

import io
import math
import random
from pathlib import Path

import numpy as np
import soundfile
from litdata import optimize
from PIL import Image, ImageDraw

SHAPES = ("circle", "square", "triangle")
COLOURS = {"red": "#d1495b", "blue": "#30638e", "green": "#66a182", "yellow": "#edae49"}
RATE = 16_000


def picture(shape: str, colour: str, seed: int) -> Image.Image:
    """A shape on a soft gradient, as a JPEG that Pillow opened (LitData keeps its bytes)."""
    chance = random.Random(seed)
    image = Image.linear_gradient("L").resize((192, 144)).convert("RGB")
    draw = ImageDraw.Draw(image)
    x, y, r = chance.randint(50, 140), chance.randint(50, 90), chance.randint(20, 45)
    corners = 3 if shape == "triangle" else 4
    if shape == "circle":
        draw.ellipse((x - r, y - r, x + r, y + r), fill=COLOURS[colour])
    else:
        turn = math.pi / 4 if corners == 4 else -math.pi / 2
        points = [
            (
                x + r * math.cos(turn + k * math.tau / corners),
                y + r * math.sin(turn + k * math.tau / corners),
            )
            for k in range(corners)
        ]
        draw.polygon(points, fill=COLOURS[colour])
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    buffer.seek(0)
    return Image.open(buffer)


def sound(pitch: float) -> bytes:
    """Half a second of a decaying tone, as FLAC."""
    time = np.arange(RATE // 2) / RATE
    tone = 0.4 * np.sin(math.tau * pitch * time) * np.exp(-4 * time)
    buffer = io.BytesIO()
    soundfile.write(buffer, tone.astype("float32"), RATE, format="FLAC")
    return buffer.getvalue()


def record(index: int) -> dict[str, object]:
    shape = SHAPES[index % len(SHAPES)]
    colour = list(COLOURS)[index % len(COLOURS)]
    return {
        "image": picture(shape, colour, index),
        "sound": sound(220 * 2 ** (index / 12)),
        "caption": f"a {colour} {shape} on a grey gradient",
        "label": SHAPES.index(shape),
    }


if __name__ == "__main__":
    target = Path(__file__).parent / "litdata"
    optimize(
        fn=record, inputs=list(range(24)), output_dir=str(target), chunk_size=12, num_workers=1
    )

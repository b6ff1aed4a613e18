"""What the installed Pillow can't load: the last one for Python 3.10 lacks two modes of TIFF that later ones have."""

from __future__ import annotations

import PIL

LACKING = frozenset({"La", "YCbCr"} if int(PIL.__version__.partition(".")[0]) < 13 else ())

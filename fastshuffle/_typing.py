"""Types shared by the public modules."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]

Direction: TypeAlias = Literal["both", "forward", "reverse"]
Side: TypeAlias = Literal["forward", "reverse"]
OPPOSITE: dict[Side, Side] = {"forward": "reverse", "reverse": "forward"}

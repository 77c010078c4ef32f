"""What scipy says to the same questions: python ask.py FILE.FUNCTION < its arguments in JSON.

A question is a function of a file beside this one; it answers with numbers."""

import importlib
import json
import sys

sys.dont_write_bytecode = True
import numpy as np

file, function = sys.argv[1].split(".")
answer = getattr(importlib.import_module(file), function)(**json.load(sys.stdin))
json.dump(np.asarray(answer, dtype=float).ravel().tolist(), sys.stdout)

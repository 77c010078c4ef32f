"""What scipy says to the same captures: python ask.py QUESTION < its arguments in JSON."""

import json
import sys

import numpy as np
from scipy import signal


def spectrum(values, period_s):
    _, power = signal.periodogram(
        values, 1 / period_s, window="hann", detrend="constant", scaling="spectrum"
    )
    # A sine of amplitude a has the power a^2 / 2; half the rate, which is alone, a^2.
    amplitudes = np.sqrt(2 * power)
    if len(values) % 2 == 0:
        amplitudes[-1] = np.sqrt(power[-1])
    return amplitudes[1:]


def response(x, y, period_s, segment):
    x, y = np.asarray(x), np.asarray(y)
    settings = dict(fs=1 / period_s, window="hann", nperseg=segment)
    f, cross = signal.csd(x, y, **settings)
    _, power = signal.welch(x, **settings)
    _, coherence = signal.coherence(x, y, **settings)
    h = cross / power
    rows = [f, 20 * np.log10(np.abs(h)), np.degrees(np.angle(h)), coherence]
    return np.array(rows).T[1:]


def chirp(seconds, period_s):
    """A chirp, and what a second-order lowpass with some noise makes of it."""
    t = np.arange(0, seconds, period_s)
    x = signal.chirp(t, 1, seconds, 200)
    b, a = signal.butter(2, 40, fs=1 / period_s)
    noise = np.random.default_rng(7).normal(0, 0.01, len(t))
    return [x, signal.lfilter(b, a, x) + noise]


question = globals()[sys.argv[1]]
answer = question(**json.load(sys.stdin))
json.dump(np.asarray(answer, dtype=float).ravel().tolist(), sys.stdout)

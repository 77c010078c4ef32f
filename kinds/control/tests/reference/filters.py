"""Filters and what else turns one signal into another, at 1000 values a second."""

import numpy as np
from scipy import integrate, signal

RATE_HZ = 1000.0


def each(question, cases):
    """The answers to one question with several arguments, one behind the other."""
    return np.concatenate([np.ravel(globals()[question](**case)) for case in cases])


def butterworth(order, cutoff_hz, initial, values):
    sos = signal.butter(order, cutoff_hz, fs=RATE_HZ, output="sos")
    state = signal.sosfilt_zi(sos) * (values[0] if initial == "first" else 0)
    return signal.sosfilt(sos, values, zi=state)[0]


def butterworth_response(order, cutoff_hz, frequency_hz):
    """What becomes of a sine: its part in phase, and the one a quarter of a turn ahead."""
    sos = signal.butter(order, cutoff_hz, fs=RATE_HZ, output="sos")
    response = signal.sosfreqz(sos, worN=[frequency_hz], fs=RATE_HZ)[1][0]
    return [response.real, response.imag]

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


def begun(b, a, initial, values):
    state = signal.lfilter_zi(b, a) * (values[0] if initial == "first" else 0)
    return signal.lfilter(b, a, values, zi=state)[0]


def biquad(shape, frequency_hz, q, gain_db, initial, values):
    """The analog prototypes of the cookbook, for 1 rad/s, by powers of s from the highest."""
    a = 10 ** (gain_db / 40)
    root = np.sqrt(a) / q
    numerator, denominator = {
        "lowpass": ([0, 0, 1], [1, 1 / q, 1]),
        "highpass": ([1, 0, 0], [1, 1 / q, 1]),
        "bandpass": ([0, 1 / q, 0], [1, 1 / q, 1]),
        "allpass": ([1, -1 / q, 1], [1, 1 / q, 1]),
        "peak": ([1, a / q, 1], [1, 1 / (a * q), 1]),
        "low_shelf": ([a, a * root, a * a], [a, root, 1]),
        "high_shelf": ([a * a, a * root, a], [1, root, a]),
    }[shape]
    warped = 2 * RATE_HZ * np.tan(np.pi * frequency_hz / RATE_HZ)
    b, a = signal.lp2lp(np.trim_zeros(numerator, "f"), denominator, warped)
    return begun(*signal.bilinear(b, a, fs=RATE_HZ), initial, values)


def coefficients(coefficients, values):
    b0, b1, b2, a1, a2 = coefficients
    return begun([b0, b1, b2], [1, a1, a2], "first", values)


def notch(frequency_hz, q, left, initial, values):
    b, a = signal.iirnotch(frequency_hz, q, fs=RATE_HZ)
    return left * np.array(values) + (1 - left) * begun(b, a, initial, values)


def derivative(time_constant_s, values):
    analog = ([1, 0], [time_constant_s, 1])
    if time_constant_s == 0:
        b, a = [RATE_HZ, -RATE_HZ], [1, 0]
    else:
        b, a, _ = signal.cont2discrete(analog, 1 / RATE_HZ, method="backward_diff")
    return begun(np.ravel(b), a, "first", values)


def integral(method, gain, initial, values):
    scaled = gain * np.array(values)
    if method == "trapezoid":
        return initial + integrate.cumulative_trapezoid(scaled, dx=1 / RATE_HZ, initial=0)
    b = [0, 1 / RATE_HZ] if method == "forward" else [1 / RATE_HZ]
    return initial + signal.lfilter(b, [1, -1], scaled)


def dead_zone(low, high, mode, values):
    values = np.array(values)
    inside = (low <= values) & (values <= high)
    return values - np.clip(values, low, high) if mode == "subtract" else np.where(inside, 0, values)


def schmitt(rises_above, falls_below, initial, values):
    """Whether the last value outside the band was above it."""
    values = np.array(values)
    outside = np.where((values > rises_above) | (values < falls_below), np.arange(len(values)), -1)
    last = np.maximum.accumulate(outside)
    return np.where(last < 0, initial, values[last] > rises_above)


def figure(window, figure, values):
    """One figure of the last values up to each."""
    first = [max(0, end - window) if window else 0 for end in range(1, len(values) + 1)]
    of = {"rms": lambda part: np.sqrt(np.mean(part**2))}.get(figure) or getattr(np, figure)
    return [of(np.array(values[at : end + 1])) for end, at in enumerate(first)]

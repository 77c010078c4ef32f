"""Controllers, signals and motions, derived in other ways than in the kinds."""

import numpy as np
from scipy import signal, stats
from scipy.optimize import brentq, linprog


def pid_linear(kp, ki, kd, filter_s, weight, of_error, period_s, setpoint, measured, forward):
    """Transfer functions in s, each made discrete by scipy."""
    r, y, out = np.array(setpoint), np.array(measured), np.array(forward)
    slides = r - y if of_error else -y
    out = out + kp * (weight * r - y)
    b, a, _ = signal.cont2discrete(([ki], [1, 0]), period_s, method="euler")
    out = out + signal.lfilter(b[0], a, r - y)
    b, a, _ = signal.cont2discrete(([kd, 0], [filter_s, 1]), period_s, method="backward_diff")
    return out + signal.lfilter(b[0], a, slides)


def pid_limited(kp, ki, kd, filter_s, tracking_s, limits, rate, actuator, period_s, setpoint):
    """A loop around a plant of second order. The controller is the observer with the actuator's
    value in it: x(k+1) = (F - K H) x(k) + (G - K D) w(k) + K u(k), where x is the integral and the
    filter's state, and w setpoint and measured (Astrom & Wittenmark, 8.6; its time is that of a
    loop). Answers measured, what the actuator got, and out, a third each."""
    plant = signal.cont2discrete(
        tuple(map(np.array, ([[0, 1], [-4, -1.2]], [[0], [4]], [[1, 0]], [[0]]))), period_s,
    )
    derivative = signal.tf2ss([kd / (filter_s + period_s), -kd / (filter_s + period_s)],
                              [1, -filter_s / (filter_s + period_s)])
    d_a, d_b, d_c, d_d = (float(it[0, 0]) for it in derivative)
    f = np.array([[1, 0], [0, d_a]])
    g = np.array([[ki * period_s, -ki * period_s], [0, -d_b]])
    h = np.array([1, d_c])
    d = np.array([kp, -kp - d_d])
    k = np.array([period_s / tracking_s, 0])
    x, p, before = np.zeros(2), np.zeros(2), 0.0
    measured, got, out = [], [], []
    for r in setpoint:
        y = float((plant[2] @ p)[0])
        w = np.array([r, y])
        v = float(h @ x + d @ w)
        u = np.clip(np.clip(v, *limits), before - rate * period_s, before + rate * period_s)
        before = u
        applied = np.clip(u, -actuator, actuator)
        x = (f - np.outer(k, h)) @ x + (g - np.outer(k, d)) @ w + k * applied
        p = plant[0] @ p + plant[1][:, 0] * applied
        measured.append(y), got.append(applied), out.append(u)
    return measured + got + out


def limit_least(way, step_max, change_max):
    """The fewest steps from rest to rest over a way: whether so many are enough is asked of a
    linear program."""
    def are_enough(count):
        differences = np.diff(np.eye(count), axis=0, prepend=0, append=0)
        changes = np.vstack([differences, -differences])
        return linprog(
            np.zeros(count), A_ub=changes, b_ub=np.full(len(changes), change_max),
            A_eq=np.ones((1, count)), b_eq=[way], bounds=[(-step_max, step_max)] * count,
        ).success

    low, high = 0, 1
    while not are_enough(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if are_enough(middle) else (middle, high)
    return [high]


def line(values, old, new, clamp):
    """The straight line through two points, as numpy fits it."""
    fitted = np.polynomial.Polynomial.fit(old, new, 1)(np.array(values))
    return np.clip(fitted, min(new), max(new)) if clamp else fitted


def shape(name, frequency, duty, phase, period_s, count):
    """A shape of scipy.signal; phase in turns."""
    angle = 2 * np.pi * (frequency * period_s * np.arange(count) + phase)
    of = {
        "sine": np.sin,
        "square": lambda it: signal.square(it, duty),
        "triangle": lambda it: signal.sawtooth(it, 0.5),
        "sawtooth": signal.sawtooth,
    }
    return of[name](angle)


def chirp(begin, end, time_s, method, phase_deg, period_s, count):
    """scipy's, which is a cosine."""
    t = period_s * np.arange(count)
    return signal.chirp(t, begin, time_s, end, method=method, phi=phase_deg - 90)


def normality(numbers):
    """How likely a normal distribution is so far off, or farther; and the greatest correlation
    of a number with one of the ten after it, in its standard deviations."""
    numbers = np.array(numbers)
    shifted = [np.mean(numbers[by:] * numbers[:-by]) for by in range(1, 11)]
    return [stats.kstest(numbers, "norm").pvalue, np.abs(shifted).max() * np.sqrt(len(numbers))]


def double_s(ways):
    """The least time from rest to rest (Biagiotti and Melchiorri, Trajectory Planning for
    Automatic Machines and Robots, 2008, section 3.4): a velocity is reached that makes the way."""
    def times(velocity, acceleration, jerk):
        """Of a change from rest to a velocity."""
        if velocity * jerk >= acceleration ** 2:
            return velocity / acceleration + acceleration / jerk
        return 2 * np.sqrt(velocity / jerk)

    def least(way, velocity, acceleration, jerk):
        way = abs(way)
        ramp = times(velocity, acceleration, jerk)
        if velocity * ramp <= way:
            return 2 * ramp + (way - velocity * ramp) / velocity
        peak = brentq(lambda it: it * times(it, acceleration, jerk) - way, 0, velocity,
                      xtol=1e-300, rtol=1e-15)
        return 2 * times(peak, acceleration, jerk)

    return [least(*way) for way in ways]

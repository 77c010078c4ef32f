"""Controllers, signals and motions, derived in other ways than in the kinds."""

import numpy as np
from scipy import signal
from scipy.optimize import linprog


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

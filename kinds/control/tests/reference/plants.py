"""Plants: scipy's own discretisation of linear systems."""

import numpy as np
from scipy import signal


def zero_order_hold(a, b, period):
    """Both matrices of the discrete system, the rows of [state input]."""
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    c, d = np.zeros((1, len(a))), np.zeros((1, b.shape[1]))
    state, inputs, *_ = signal.cont2discrete((a, b, c, d), period, method="zoh")
    return np.hstack([state, inputs])


def outputs(system, initial, period, inputs):
    """Of a continuous system with held inputs, or of a discrete one if there is no period."""
    system = tuple(np.array(matrix, dtype=float) for matrix in system)
    if period is not None:
        *system, _ = signal.cont2discrete(system, period, method="zoh")
    _, y, _ = signal.dlsim((*system, period or 1.0), np.array(inputs), x0=initial)
    return y


def first_order(gain, time_constant, dead, initial, period, inputs):
    """What it has come to by the end of each period; it rests before."""
    late = np.concatenate([np.full(dead, initial / gain), inputs])[: len(inputs)]
    plant = signal.TransferFunction([gain], [time_constant, 1.0]).to_ss()
    a, b, c, d, _ = signal.cont2discrete((plant.A, plant.B, plant.C, plant.D), period, "zoh")
    # One more period, to see the end of the last.
    late = np.append(late, 0.0)[:, None]
    _, y, _ = signal.dlsim((a, b, c, d, period), late, x0=[initial / c[0, 0]])
    return y[1:]


def after_each_period(a, b, period, inputs):
    """The state of a linear system at the end of each period, from rest, column by column."""
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    c, d = np.eye(len(a)), np.zeros((len(a), b.shape[1]))
    *system, _ = signal.cont2discrete((a, b, c, d), period, method="zoh")
    # One more period, to see the end of the last.
    inputs = np.vstack([inputs, inputs[-1:]])
    _, y, _ = signal.dlsim((*system, period), inputs)
    return y[1:].T


def two_mass(jm, jl, k, d, bm, bl, period, inputs):
    """Motor position and velocity, load position and velocity."""
    a = [[0, 1, 0, 0], [-k / jm, -(d + bm) / jm, k / jm, d / jm],
         [0, 0, 0, 1], [k / jl, d / jl, -k / jl, -(d + bl) / jl]]
    return after_each_period(a, [[0, 0], [1 / jm, 0], [0, 0], [0, -1 / jl]], period, inputs)

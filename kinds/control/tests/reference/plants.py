"""Plants: scipy's own discretisation, and numeric integration of the equations of motion."""

import numpy as np
from scipy import signal
from scipy.integrate import solve_ivp


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


def dc_motor(r, l, kt, ke, j, b, period, inputs):
    a = [[0, 1, 0], [0, -b / j, kt / j], [0, -ke / l, -r / l]]
    return after_each_period(a, [[0, 0], [0, -1 / j], [1 / l, 0]], period, inputs)


def dry_motor(r, l, kt, ke, j, b, dry, period, inputs):
    """With dry friction: integration from one change of friction to the next."""
    state, found = np.zeros(3), []
    for voltage, load in inputs:
        now = 0.0
        while now < period:
            _, w, i = state
            torque = kt * i - load
            sticks = w == 0.0 and abs(torque) <= dry
            sign = np.sign(torque if w == 0.0 else w)

            def rates(_, x):
                di = (voltage - r * x[2] - ke * x[1]) / l
                turn = (kt * x[2] - b * x[1] - load - sign * dry) / j
                return [0, 0, di] if sticks else [x[1], turn, di]

            def change(_, x):
                return dry - abs(kt * x[2] - load) if sticks else sign * x[1]

            change.terminal, change.direction = True, -1
            way = solve_ivp(rates, (now, period), state, method="DOP853", events=change,
                            rtol=1e-12, atol=1e-14, max_step=period / 20)
            now, state = way.t[-1], way.y[:, -1].copy()
            if way.status == 1 and sticks:
                # Just past the torque at which it breaks loose.
                edge = np.sign(kt * state[2] - load) * dry * (1 + 1e-13)
                state[2] = (load + edge) / kt
            elif way.status == 1:
                state[1] = 0.0
        found.append(state)
    return np.array(found).T


def two_mass(jm, jl, k, d, bm, bl, period, inputs):
    """Motor position and velocity, load position and velocity."""
    a = [[0, 1, 0, 0], [-k / jm, -(d + bm) / jm, k / jm, d / jm],
         [0, 0, 0, 1], [k / jl, d / jl, -k / jl, -(d + bl) / jl]]
    return after_each_period(a, [[0, 0], [1 / jm, 0], [0, 0], [0, -1 / jl]], period, inputs)


def cart_pendulum(cart, load, rope, rub, swing, g, end, angle, brake, period, inputs):
    """Two bodies in the plane, and the force of the rope that keeps them apart. The state: place
    and speed of the cart, then of the load. An input: both forces, and whether the brake is closed."""
    state = np.array([0, 0, rope * np.sin(angle), -rope * np.cos(angle), 0, 0], dtype=float)
    found = []

    def solved(x, force, wind, held):
        """Acceleration of the cart and of the load; then what pushes the cart."""
        place, speed = x[2:4] - [x[0], 0], x[4:6] - [x[1], 0]
        along = place / rope
        across = np.array([-along[1], along[0]])
        rate = speed @ across / rope
        twist = -swing * rate / rope
        matrix = np.array([[cart, 0, 0, -along[0]], [0, load, 0, along[0]],
                           [0, 0, load, along[1]], [-along[0], along[0], along[1], 0]])
        right = np.array([force - rub * x[1] - twist * across[0], wind + twist * across[0],
                          twist * across[1] - load * g, -rope * rate * rate])
        if held:
            matrix[0] = [1, 0, 0, 0]
            right[0] = 0
        a, ax, ay, tension = np.linalg.solve(matrix, right)
        push = force - rub * x[1] + tension * along[0] - twist * across[0]
        return [a, ax, ay], push

    for force, wind, closed in inputs:
        now, dry = 0.0, brake * closed
        while now < period:
            side = np.sign(state[0])

            def grip(x):
                """What it takes to move a cart that stands."""
                push = solved(x, force, wind, True)[1]
                at_end = push * side if abs(x[0]) >= end else -1.0
                return max(at_end, dry - abs(push) if dry else -1.0)

            held = state[1] == 0.0 and grip(state) >= 0
            ahead = np.sign(state[1] or solved(state, force, wind, True)[1])

            def rates(_, x):
                a, ax, ay = solved(x, force - ahead * dry, wind, held)[0]
                return [x[1], a, x[4], x[5], ax, ay]

            def change(_, x):
                if held:
                    return grip(x)
                return min(end - abs(x[0]), ahead * x[1]) if dry else end - abs(x[0])

            change.terminal, change.direction = True, -1
            way = solve_ivp(rates, (now, period), state, method="DOP853", events=change,
                            rtol=1e-12, atol=1e-14)
            now, state = way.t[-1], way.y[:, -1].copy()
            if way.status == 1 and held:
                # It is pulled away: not held in what is left of the period.
                state[1] = np.sign(solved(state, force, wind, True)[1]) * 1e-15
            elif way.status == 1 and end - abs(state[0]) < 1e-12:
                along = (state[2:4] - [state[0], 0]) / rope
                state[4:6] -= (state[4:6] @ along) * along
                state[0], state[1] = np.copysign(end, state[0]), 0.0
            elif way.status == 1:
                state[1] = 0.0
        found.append(state)
    x, v, px, py, vx, vy = np.array(found).T
    theta = np.unwrap(np.arctan2(px - x, -py))
    theta += 2 * np.pi * np.round((angle - theta[0]) / (2 * np.pi))
    rate = ((vx - v) * -py + vy * (px - x)) / rope**2
    return [x, v, theta, rate]

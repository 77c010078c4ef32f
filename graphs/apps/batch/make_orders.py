#!/usr/bin/env python3
"""Writes a file of orders: make_orders.py 1000000 > orders.csv. One line of a thousand is wrong."""

import random
import sys

lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
chance = random.Random(19)
names = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Leslie", "Frances", '"Dijkstra, E. W."']
print("id,customer,amount_cents,placed")
for number in range(1, lines + 1):
    customer, cents = chance.choice(names), chance.randrange(1, 1_000_000)
    day = f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    match number % 3000:
        # In turn: not a number; an amount of 0, which the table refuses; the id of another order.
        case 1000:
            print(f"{number},{customer},a lot,{day}")
        case 2000:
            print(f"{number},{customer},0,{day}")
        case 0:
            print(f"{number - 1},{customer},{cents},1999-01-01")
        case _:
            print(f"{number},{customer},{cents},{day}")

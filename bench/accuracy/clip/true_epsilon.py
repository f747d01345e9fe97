# SPDX-License-Identifier: Apache-2.0
"""What the paper's noise amounts to. It takes sigma from TensorFlow Privacy, which accounts by Renyi divergences, as if a batch
gradient had sensitivity c; between two batches that differ in a pair a clipped gradient moves by up to 2c, so its steps are
those of sigma / 2. Prints, for each data set of the paper (batch 32, its epochs, delta = 1/(2n)) and each epsilon that it
prints, that sigma and the epsilon that `eigenveil account` certifies. Usage: true_epsilon.py PROGRAM; a minute."""
import json
import math
import subprocess
import sys

SETS = (("MNIST, Fashion-MNIST", 60000, 30), ("CIFAR-10", 50000, 30), ("SVHN", 604388, 15))
EPSILONS, BATCH = (10, 3, 1, 0.5, 0.25), 32
ORDERS = [*range(2, 64), 80, 96, 128, 256, 512]


def renyi(q, sigma, order):
    """Mironov, Talwar and Zhang 2019, of a whole order."""
    terms = [math.log(math.comb(order, k)) + k * math.log(q) + (order - k) * math.log1p(-q) + (k * k - k) / (2 * sigma**2)
             for k in range(order + 1)]
    most = max(terms)
    return (most + math.log(sum(math.exp(term - most) for term in terms))) / (order - 1)


def printed(q, sigma, steps, delta):
    """The epsilon that the paper's accountant gives (Canonne, Kamath and Steinke 2020, proposition 12)."""
    return min(steps * renyi(q, sigma, a) + math.log1p(-1 / a) - math.log(delta * a) / (a - 1) for a in ORDERS)


def certified(program, q, sigma, steps, delta):
    done = subprocess.run([program, "account", "--delta", str(delta), "--event",
                           f"poisson-gaussian:q={q},sigma={sigma},count={steps}", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["epsilon"]


def main(program):
    print("| data | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |\n" + "|---" * (len(EPSILONS) + 1) + "|")
    for name, n, epochs in SETS:
        q, steps, delta = BATCH / n, epochs * n // BATCH, 0.5 / n
        sigmas = []
        for wanted in EPSILONS:
            low, high = 0.3, 20.0
            while high / low > 1.0003:
                middle = (low * high) ** 0.5
                low, high = (middle, high) if printed(q, middle, steps, delta) > wanted else (low, middle)
            sigmas.append(high)
        print(f"| {name}: sigma | " + " | ".join(f"{s:.3f}" for s in sigmas) + " |")
        print(f"| {name}: true epsilon | " + " | ".join(f"{certified(program, q, s / 2, steps, delta):.3g}" for s in sigmas)
              + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

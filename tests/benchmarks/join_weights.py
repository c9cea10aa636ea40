"""How the ``joins`` of ``weights.json`` were learned: where in a packet of pages a document begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from evalkit.classification.offline.page_segmentation import JOIN_SIGNS
from evalkit.classification.training.fitting import FloatArray
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES

MAX_PAGE_TYPE_STRENGTH = 1.0
"""How much the types of pages may count in where documents begin: on unlike records they are wrong more often."""
_RIDGE_JOINS = 2.0


class PageChain(NamedTuple):
    """A packet whose documents are known, for learning where they begin."""

    type_opinions: FloatArray
    """One row a page, one column a type: logarithms."""
    join_signs: FloatArray
    """One row a join, one column each of ``JOIN_SIGNS``."""
    is_beginning: npt.NDArray[np.bool_]
    page_types: npt.NDArray[np.intp]
    """The type of each page."""


def fit_join_weights(chains: Sequence[PageChain]) -> dict[str, float]:
    """Learn the weights of ``JOIN_SIGNS`` and of page types from packets.

    They make the true documents likeliest: the conditional likelihood of a chain.

    Few packets move them little from what they were without any.

    Source: Lafferty, McCallum and Pereira, Conditional Random Fields (ICML 2001).
    """
    type_count = len(DOCUMENT_TYPES)
    prior_weights = np.array(list(JOIN_SIGNS.values()))

    def compute_chain_loss(
        chain: PageChain, join_weights: FloatArray, strength: float
    ) -> tuple[float, FloatArray, float]:
        page_count = len(chain.type_opinions)
        type_fits = np.exp(strength * chain.type_opinions)
        odds_by_join = np.exp(np.clip(chain.join_signs @ join_weights, -30, 30))
        forward, scales = [type_fits[0] / type_fits[0].sum()], [type_fits[0].sum()]
        for index in range(1, page_count):
            forward_step = (forward[-1] + odds_by_join[index - 1] / type_count) * type_fits[index]
            scales.append(forward_step.sum())
            forward.append(forward_step / scales[-1])
        backward = np.ones(type_count)
        page_beliefs, join_beliefs = np.zeros((page_count, type_count)), np.zeros(max(page_count - 1, 0))
        page_beliefs[-1] = forward[-1]
        for index in range(page_count - 2, -1, -1):
            backward_fits = type_fits[index + 1] * backward
            join_beliefs[index] = (
                odds_by_join[index]
                * backward_fits.sum()
                / type_count
                / (odds_by_join[index] * backward_fits.sum() / type_count + forward[index] @ backward_fits)
            )
            backward = backward_fits + odds_by_join[index] * backward_fits.sum() / type_count
            backward /= backward.sum()
            belief = forward[index] * backward
            page_beliefs[index] = belief / belief.sum()
        true_fit = chain.type_opinions[np.arange(page_count), chain.page_types].sum()
        true_joins = (chain.join_signs @ join_weights - math.log(type_count))[chain.is_beginning].sum()
        chain_loss = np.log(scales).sum() - strength * true_fit - true_joins
        weight_gradient = chain.join_signs.T @ (join_beliefs - chain.is_beginning)
        strength_gradient = float((page_beliefs * chain.type_opinions).sum() - true_fit)
        return float(chain_loss), weight_gradient, strength_gradient

    def compute_loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        join_weights, strength = parameters[:-1], parameters[-1]
        deviation = join_weights - prior_weights
        loss_sum = _RIDGE_JOINS * float(deviation @ deviation) / 2
        gradient = np.concatenate([_RIDGE_JOINS * deviation, [0.0]])
        for chain in chains:
            chain_loss, weight_gradient, strength_gradient = compute_chain_loss(chain, join_weights, strength)
            loss_sum += chain_loss
            gradient[:-1] += weight_gradient
            gradient[-1] += strength_gradient
        return loss_sum, gradient

    start_parameters = np.array([*prior_weights, MAX_PAGE_TYPE_STRENGTH])
    bounds = [(None, None)] * len(JOIN_SIGNS) + [(0.0, MAX_PAGE_TYPE_STRENGTH)]
    solution = minimize(
        compute_loss, start_parameters, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 120}
    ).x
    return dict(zip((*JOIN_SIGNS, "types"), solution.tolist(), strict=True))

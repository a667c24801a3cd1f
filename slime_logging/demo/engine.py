"""The rollout engine: writes responses with the actor's newest weights, token by token, in plain
torch with a cache.

Policy: an implementation of its own, as an inference engine is; it gets weights as arrays and never
imports Megatron. That it agrees with Megatron's forward is measured in every step as
`train/train_rollout_logprob_abs_diff`.
"""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import torch
from torch.nn import functional


class Engine:
    """A GPT with learned positions and LayerNorm, read from Megatron's weight names."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._weights: dict[str, Any] = {}
        self._random = torch.Generator().manual_seed(args.rollout_seed)

    def load(self, weights: dict[str, Any]) -> None:
        """Take over the actor's weights: name -> numpy array, whole (not split over tensor parallel
        ranks).
        """
        self._weights = {name: torch.from_numpy(values) for name, values in weights.items()}

    def write(self, prompts: Any, num_tokens: int, temperature: float) -> tuple[Any, Any]:
        """Continue the prompts, int64 [samples, tokens], by `num_tokens` tokens; temperature 0
        takes the likeliest.

        Returns:
            Prompts with responses, int64 [samples, tokens + num_tokens], and the responses' log
            probabilities.
        """
        cache: list[tuple[Any, Any]] = []
        tokens, log_probs, new = prompts, [], prompts
        for _ in range(num_tokens):
            every = torch.log_softmax(self._next_logits(new, tokens.shape[1], cache), dim=-1)
            if temperature > 0:
                new = torch.multinomial(
                    (every / temperature).softmax(-1), 1, generator=self._random
                )
            else:
                new = every.argmax(-1, keepdim=True)
            log_probs.append(every.gather(-1, new))
            tokens = torch.cat([tokens, new], dim=1)
        return tokens, torch.cat(log_probs, dim=1)

    def _next_logits(self, new: Any, length: int, cache: list[tuple[Any, Any]]) -> Any:
        weights = self._weights
        word, position = (
            weights["embedding.word_embeddings.weight"],
            weights["embedding.position_embeddings.weight"],
        )
        first = length - new.shape[1]
        hidden = word[new] + position[first:length]
        for layer in range(self._args.num_layers):
            name = f"decoder.layers.{layer}."
            hidden = hidden + self._attend(
                name, self._norm(name + "input_layernorm", hidden), layer, cache
            )
            inner = functional.gelu(
                self._linear(
                    name + "mlp.linear_fc1", self._norm(name + "pre_mlp_layernorm", hidden)
                )
            )
            hidden = hidden + self._linear(name + "mlp.linear_fc2", inner)
        hidden = self._norm("decoder.final_layernorm", hidden[:, -1])
        return (hidden @ weights.get("output_layer.weight", word).T)[:, : self._args.vocab_size]

    def _attend(self, name: str, hidden: Any, layer: int, cache: list[tuple[Any, Any]]) -> Any:
        samples, length, _ = hidden.shape
        heads, width = self._args.num_attention_heads, self._args.kv_channels
        # Megatron keeps the three of each head beside each other: [heads, (query, key, value),
        # width].
        joined = self._linear(name + "self_attention.linear_qkv", hidden).view(
            samples, length, heads, 3 * width
        )
        query, key, value = (part.transpose(1, 2) for part in joined.split(width, dim=-1))
        if layer < len(cache):
            key, value = (
                torch.cat([cache[layer][0], key], dim=2),
                torch.cat([cache[layer][1], value], dim=2),
            )
            cache[layer] = (key, value)
        else:
            cache.append((key, value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(width)
        later = torch.ones(length, key.shape[2]).triu(key.shape[2] - length + 1).bool()
        read = scores.masked_fill(later, -math.inf).softmax(-1) @ value
        return self._linear(
            name + "self_attention.linear_proj", read.transpose(1, 2).reshape(samples, length, -1)
        )

    def _linear(self, name: str, hidden: Any) -> Any:
        return functional.linear(
            hidden, self._weights[name + ".weight"], self._weights.get(name + ".bias")
        )

    def _norm(self, name: str, hidden: Any) -> Any:
        weight, bias = self._weights[name + ".weight"], self._weights[name + ".bias"]
        return functional.layer_norm(
            hidden, weight.shape, weight, bias, self._args.layernorm_epsilon
        )

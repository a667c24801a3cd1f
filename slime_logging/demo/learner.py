"""One rank of one role, learning: Megatron's forward-backward schedule, optimizer and scheduler on
a batch of samples.

Policy: knows nothing of processes, pipes or tracking. Every rank of a role makes the same calls in
the same order; what they return is the same on each of them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import torch

from slime_logging.demo import model, ppo

Metrics = dict[str, float]


class Learner:
    """The model of a role with its optimizer and scheduler; `args` are the role's own."""

    def __init__(self, args: Namespace, role: str) -> None:
        self._args = args
        self._role = role
        self._model = model.build_model(args, role)
        self._optimizer, self._scheduler = model.build_optimizer(args, self._model)

    def predict(self, tokens: Any) -> Any:
        """Return what the model says of each response token, without gradients.

        The actor's log probabilities or the critic's values, float32 [samples, response tokens].
        """
        with torch.no_grad():
            parts = self._run({"tokens": tokens}, lambda output, _: output, is_forward_only=True)
        return torch.cat(parts)

    def learn(self, batch: dict[str, Any]) -> Iterator[Metrics]:
        """Train one step for each `global_batch_size` samples of the batch, and yield each step's
        metrics.
        """
        loss = _critic_loss if self._role == "critic" else _actor_loss
        size = self._args.global_batch_size
        for first in range(0, len(batch["tokens"]), size):
            self._model.zero_grad_buffer()
            self._optimizer.zero_grad()
            part = {name: values[first : first + size] for name, values in batch.items()}
            losses = self._run(
                part, lambda output, micro: loss(self._args, output, micro), is_forward_only=False
            )
            metrics = {name: sum(each[name] for each in losses) / len(losses) for name in losses[0]}
            learning_rate = self._optimizer.param_groups[0]["lr"]
            _, grad_norm, _ = self._optimizer.step()
            self._scheduler.step(increment=size)
            yield metrics | {"grad_norm": float(grad_norm), "lr-pg_0": learning_rate}

    def whole_weights(self) -> dict[str, Any]:
        """Return the weights as numpy arrays, joined over the role's ranks."""
        return model.whole_weights(self._model)

    def _run(
        self, batch: dict[str, Any], measure: Callable[..., Any], is_forward_only: bool
    ) -> list[Any]:
        from megatron.core.pipeline_parallel import get_forward_backward_func

        size = self._args.micro_batch_size
        num_microbatches = len(batch["tokens"]) // size

        def forward(
            micro_batches: Iterator[dict[str, Any]], gpt: Any
        ) -> tuple[Any, Callable[..., Any]]:
            micro = next(micro_batches)
            output = self._respond(gpt, micro["tokens"])
            return output, lambda result, **_: measure(result, micro)

        micro_batches = (
            {name: values[first : first + size] for name, values in batch.items()}
            for first in range(0, num_microbatches * size, size)
        )
        result: list[Any] = get_forward_backward_func()(
            forward_step_func=forward,
            data_iterator=micro_batches,
            model=[self._model],
            num_microbatches=num_microbatches,
            seq_length=self._args.seq_length,
            micro_batch_size=size,
            forward_only=is_forward_only,
            collect_non_loss_data=is_forward_only,
        )
        return result

    def _respond(self, gpt: Any, tokens: Any) -> Any:
        from megatron.core.tensor_parallel import gather_from_tensor_model_parallel_region

        length = tokens.shape[1]
        prompt = length - self._args.rollout_max_response_len
        positions = torch.arange(length).expand_as(tokens)
        mask = torch.ones(1, 1, length, length).triu(1).bool()
        # The output at each place speaks of the token after it.
        output = gpt(tokens, positions, mask)[:, prompt - 1 : length - 1]
        if self._role == "critic":
            return output.squeeze(-1)
        logits = gather_from_tensor_model_parallel_region(output)[..., : self._args.vocab_size]
        log_probs, entropy = ppo.log_probs_and_entropy(logits, tokens[:, prompt:])
        return torch.stack([log_probs, entropy]) if torch.is_grad_enabled() else log_probs


def _actor_loss(args: Namespace, output: Any, micro: dict[str, Any]) -> tuple[Any, Metrics]:
    log_probs, entropy = output
    pg_loss, metrics = ppo.policy_loss(
        log_probs, micro["log_probs"], micro["advantages"], args.eps_clip, args.eps_clip_high
    )
    loss = pg_loss - args.entropy_coef * entropy.mean()
    drift = (micro["log_probs"] - micro["rollout_log_probs"]).abs().mean()
    values = {"loss": loss, "pg_loss": pg_loss, "entropy_loss": entropy.mean(), **metrics}
    return loss, _as_numbers({**values, "train_rollout_logprob_abs_diff": drift})


def _critic_loss(args: Namespace, values: Any, micro: dict[str, Any]) -> tuple[Any, Metrics]:
    loss, metrics = ppo.value_loss(values, micro["values"], micro["returns"], args.value_clip)
    return loss, _as_numbers({"loss": loss, "value_loss": loss, "values": values.mean(), **metrics})


def _as_numbers(metrics: dict[str, Any]) -> Metrics:
    # Numbers at once: the schedule divides the loss tensor in place by the number of microbatches.
    return {name: value.item() for name, value in metrics.items()}

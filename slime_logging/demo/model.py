"""The GPT model of one role, its optimizer and its scheduler, all built by megatron-core from the
role's arguments.

Policy: no number of the model or the optimizer stands here. Every field of Megatron's configuration
classes that has an argument of the same name takes it from the namespace, so what the run shows for
a role is what trained.
"""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import Any

import torch


class ValueHead(torch.nn.Linear):  # type: ignore[misc]
    """A linear layer of width 1 in the place of GPTModel's output layer: a value for each token
    instead of logits.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size, 1, bias=True)
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.bias)

    def forward(
        self, hidden: Any, weight: Any = None, runtime_gather_output: Any = None
    ) -> tuple[Any, None]:
        """Return the values and no bias, as GPTModel expects of its output layer, which it gives
        more arguments.
        """
        del weight, runtime_gather_output
        return super().forward(hidden), None


def build_model(args: Namespace, role: str) -> Any:
    """Build the role's model, wrapped in Megatron's DistributedDataParallel.

    The actor and the critic are the same GPT; the critic's output layer is a `ValueHead`.
    """
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

    torch.manual_seed(args.seed)
    model_parallel_cuda_manual_seed(args.seed)
    config = _transformer_config(args)
    model = GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_layer_local_spec(normalization=args.normalization),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        position_embedding_type=args.position_embedding_type,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        parallel_output=True,
    )
    if role == "critic":
        model.output_layer = ValueHead(args.hidden_size)
    ddp_config = DistributedDataParallelConfig(
        **_fields_named_in(DistributedDataParallelConfig, args),
        grad_reduce_in_fp32=args.accumulate_allreduce_grads_in_fp32,
        check_for_nan_in_grad=args.check_for_nan_in_loss_and_grad,
    )
    return DistributedDataParallel(config, ddp_config, model)


def build_optimizer(args: Namespace, model: Any) -> tuple[Any, Any]:
    """Build Megatron's optimizer and its scheduler of learning rate and weight decay, and tie them
    to the model.
    """
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
    from megatron.core.utils import get_model_config

    optimizer = get_megatron_optimizer(
        OptimizerConfig(**_fields_named_in(OptimizerConfig, args)), [model]
    )
    config = get_model_config(model)
    config.grad_scale_func = optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads
    # Megatron counts the schedule in samples, the arguments count it in steps.
    decay_steps = (args.lr_decay_iters or args.train_iters) * args.global_batch_size
    scheduler = OptimizerParamScheduler(
        optimizer,
        init_lr=args.lr_warmup_init,
        max_lr=args.lr,
        min_lr=args.min_lr,
        lr_warmup_steps=args.lr_warmup_iters * args.global_batch_size,
        lr_decay_steps=decay_steps,
        lr_decay_style=args.lr_decay_style,
        start_wd=args.start_weight_decay,
        end_wd=args.end_weight_decay,
        wd_incr_steps=args.train_iters * args.global_batch_size,
        wd_incr_style=args.weight_decay_incr_style,
        use_checkpoint_opt_param_scheduler=args.use_checkpoint_opt_param_scheduler,
        override_opt_param_scheduler=args.override_opt_param_scheduler,
    )
    return optimizer, scheduler


def whole_weights(model: Any) -> dict[str, Any]:
    """Return the model's weights as numpy arrays, joined over the tensor parallel ranks; every rank
    must call it.
    """
    from megatron.core import parallel_state

    size = parallel_state.get_tensor_model_parallel_world_size()
    group = parallel_state.get_tensor_model_parallel_group()
    weights = {}
    for name, parameter in model.module.named_parameters():
        weight = parameter.detach()
        if size > 1 and getattr(parameter, "tensor_model_parallel", False):
            parts = [torch.empty_like(weight) for _ in range(size)]
            torch.distributed.all_gather(parts, weight.contiguous(), group=group)
            weight = torch.cat(parts, dim=parameter.partition_dim)
        weights[name] = weight.numpy().copy()
    return weights


def _transformer_config(args: Namespace) -> Any:
    from megatron.core.transformer import TransformerConfig

    named = _fields_named_in(TransformerConfig, args)
    # These fields mean the same as an argument of another name, or only under a condition.
    named["persist_layer_norm"] = not args.no_persist_layer_norm
    named["bias_activation_fusion"] = args.bias_gelu_fusion
    named["batch_p2p_comm"] = not args.overlap_p2p_comm
    named["num_query_groups"] = args.num_query_groups if args.group_query_attention else None
    return TransformerConfig(**named)


def _fields_named_in(config_class: Any, args: Namespace) -> dict[str, Any]:
    values = vars(args)
    names = {field.name for field in dataclasses.fields(config_class) if field.init}
    return {name: values[name] for name in sorted(names & set(values)) if values[name] is not None}

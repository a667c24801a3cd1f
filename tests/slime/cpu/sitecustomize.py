"""Makes slime's own training job run without a GPU. Python loads it at the start of each process of the job.

slime's files stay as they are. What a machine without GPUs and inference engines cannot have stands in for the real
thing: packages that are not installed (`stand_ins`), and, once a module of slime is loaded, the names in it that
touch a device, a model or an engine (`CHANGES`). Its parser, loop, placement, Ray actors, rollout manager, data and
metrics are the real ones.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import typing
from types import SimpleNamespace

import stand_ins

if not hasattr(typing, "override"):  # Megatron-LM is written for Python 3.12
    typing.override = lambda function: function


def change_torch(module):
    """A compiler takes seconds to load in each process, and has nothing to do."""
    module.compile = lambda function=None, **options: function or (lambda function: function)


def change_accelerator(module):
    module.register_accelerator(
        "cpu", stand_ins.accelerator(module.Accelerator), lambda: True, 999, ("gloo",)
    )


def change_initialize(module):
    module.np = SimpleNamespace(__version__="1.26.4", random=module.np.random)
    module.tensor_parallel = SimpleNamespace(model_parallel_cuda_manual_seed=lambda *seed: None)
    module._build_tokenizer = lambda args: None


def change_model(module):
    module.initialize_model_and_optimizer = stand_ins.new_model
    module.train_one_step = stand_ins.train_one_step
    module.get_model_config = lambda model: model.config
    module.forward_only = stand_ins.forward_only
    module.save = lambda *state: None


def change_actor(module):
    module.named_params_and_buffers = lambda *args, **options: ()
    module.compute_advantages_and_returns = stand_ins.compute_advantages_and_returns
    for name in ("Disk", "Distributed", "Tensor"):
        setattr(module, f"UpdateWeightFrom{name}", stand_ins.Nothing)
    module.TensorBackuper = SimpleNamespace(create=lambda **options: stand_ins.Backups())


def change_memory(module):
    module.clear_memory = lambda clear_host_memory=False: None


def change_rollout(module):
    module.start_rollout_servers = lambda args, groups: ({}, [])
    module.init_http_client = lambda args: None


CHANGES = {
    "torch": change_torch,
    "slime.utils.accelerator": change_accelerator,
    "slime.utils.memory_utils": change_memory,
    "slime.backends.megatron_utils.initialize": change_initialize,
    "slime.backends.megatron_utils.model": change_model,
    "slime.backends.megatron_utils.actor": change_actor,
    "slime.ray.rollout": change_rollout,
}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages that are not there, and changes slime's modules once they are loaded."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in stand_ins.PACKAGES or name in stand_ins.CONTENTS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name in CHANGES:
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            load, change = spec.loader.exec_module, CHANGES[name]
            spec.loader.exec_module = lambda module: (load(module), change(module))
            return spec
        return None

    def create_module(self, spec):
        return stand_ins.Package(spec.name)

    def exec_module(self, module):
        vars(module).update(stand_ins.CONTENTS.get(module.__name__, {}))


sys.meta_path.insert(0, StandIns())

"""The network and the loss of each job type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from repro.measure import image_networks, other_networks
from repro.measure.other_networks import (
    VOCABULARY,
    Agent,
    LstmLM,
    NeuMF,
    TransformerLM,
    Translation,
)

#: Job type -> function that builds its network.
_BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "cnn_mnist": image_networks.cnn_mnist,
    "resnet18": lambda: image_networks.resnet(18),
    "resnet50": lambda: image_networks.resnet(50),
    "vgg16": lambda: image_networks.vgg(16),
    "vgg19": lambda: image_networks.vgg(19),
    "inception_v3": image_networks.InceptionV3,
    "shufflenet": image_networks.shufflenet,
    "vit_small": image_networks.VisionTransformer,
    "bert": lambda: TransformerLM(VOCABULARY["bert"], 512, causal=False),
    "gpt2": lambda: TransformerLM(VOCABULARY["gpt2"], 1024, causal=True),
    "lstm": lambda: LstmLM(VOCABULARY["lstm"]),
    "transformer": lambda: Translation(VOCABULARY["transformer"]),
    "neumf": NeuMF,
    "recoder": other_networks.recoder,
    "a2c": lambda: Agent(with_value=True),
    "dqn": lambda: Agent(with_value=False),
}
#: Weight of the auxiliary classifier of Inception v3, and of the value and entropy of A2C.
_AUXILIARY = 0.4
_VALUE = 0.5
_ENTROPY = 0.01


def build(job: str, device: torch.device | str) -> nn.Module:
    """Network of a job type with random weights, in training mode, on a device."""
    with torch.device(device):
        return _BUILDERS[job]().train()


def parameter_count(network: nn.Module) -> int:
    """Number of parameters; a shared one counts once."""
    return sum(parameter.numel() for parameter in network.parameters())


def loss(job: str, output: Any, targets: Tensor) -> Tensor:
    """Loss of a batch."""
    if job == "inception_v3":
        logits, auxiliary = output
        main = functional.cross_entropy(logits, targets)
        return main + _AUXILIARY * functional.cross_entropy(auxiliary, targets)
    if job == "neumf":
        return functional.binary_cross_entropy_with_logits(output.float(), targets)
    if job == "recoder":
        return -(functional.log_softmax(output.float(), 1) * targets).sum(1).mean()
    if job in ("a2c", "dqn"):
        actions, value = output
        return _agent_loss(actions, value, targets)
    return functional.cross_entropy(output.flatten(0, -2), targets.flatten())


def _agent_loss(actions: Tensor, value: Tensor | None, returns: Tensor) -> Tensor:
    """Loss of an agent on synthetic returns.

    The action that is taken in state i of the batch is i modulo the number of actions.
    """
    chosen = torch.arange(len(actions), device=actions.device) % actions.shape[1]
    if value is None:
        chosen_values = actions.gather(1, chosen[:, None]).squeeze(1)
        return functional.smooth_l1_loss(chosen_values.float(), returns)
    log_p = functional.log_softmax(actions.float(), 1)
    advantage = returns - value.detach().float()
    policy = -(log_p.gather(1, chosen[:, None]).squeeze(1) * advantage).mean()
    entropy = -(log_p.exp() * log_p).sum(1).mean()
    return policy + _VALUE * functional.mse_loss(value.float(), returns) - _ENTROPY * entropy

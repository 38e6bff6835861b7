"""Who may read a partition within a consumer group: epoch, no-epoch and mixed rules.

Source: "Event processor host", section Epoch, of the Event Hubs documentation; texts of the errors as users of the
service have published them (azure-event-hubs-go#181, azure-sdk-for-go#24164, azure-sdk-for-java#26583,
azure-docs#24985).
"""

from typing import Protocol

from service.amqp.errors import RESOURCE_LIMIT_EXCEEDED, STOLEN, AmqpError

MAX_NON_EPOCH_RECEIVERS = 5
"""Receivers without epoch per partition and consumer group."""


class Receiver(Protocol):
    """What these rules need to know of a receiving link."""

    epoch: int | None
    receiver_name: str

    def detach(self, error: AmqpError) -> None:
        """Takes the link away, for this reason."""

    def wake(self) -> None:
        """There may be something to deliver."""


class ReceiverGroup:
    """The receivers of one partition in one consumer group."""

    __slots__ = ("receivers",)

    def __init__(self) -> None:
        self.receivers: list[Receiver] = []

    def admit(self, newcomer: Receiver) -> None:
        """Adds a receiver, detaching those it supersedes; AmqpError if the rules refuse it."""
        highest = max((r.epoch for r in self.receivers if r.epoch is not None), default=None)
        if newcomer.epoch is None:
            self._admit_without_epoch(newcomer, highest)
            return
        if highest is not None and highest > newcomer.epoch:
            raise AmqpError(
                f"Receiver '{self._holder(highest)}' with a higher epoch '{highest}' already exists. Receiver "
                f"'{newcomer.receiver_name}' with epoch {newcomer.epoch} cannot be created. Make sure you are creating "
                "receiver with increasing epoch value to ensure connectivity, or ensure all old epoch receivers are "
                "closed or disconnected.",
                STOLEN,
            )
        superseded, self.receivers = self.receivers, [newcomer]
        for receiver in superseded:
            receiver.detach(_superseded(receiver, newcomer))

    def remove(self, receiver: Receiver) -> None:
        """Forgets a receiver that is gone."""
        if receiver in self.receivers:
            self.receivers.remove(receiver)

    def _admit_without_epoch(self, newcomer: Receiver, highest: int | None) -> None:
        if highest is not None:
            raise AmqpError(
                f"At least one receiver for the endpoint is created with epoch of '{highest}', and so non-epoch "
                "receiver is not allowed. Either reconnect with a higher epoch, or make sure all epoch receivers are "
                "closed or disconnected.",
                STOLEN,
            )
        if len(self.receivers) >= MAX_NON_EPOCH_RECEIVERS:
            names = ", ".join(receiver.receiver_name for receiver in self.receivers)
            raise AmqpError(
                "Exceeded the maximum number of allowed receivers per partition in a consumer group which is "
                f"{MAX_NON_EPOCH_RECEIVERS}. List of connected receivers - {names}.",
                RESOURCE_LIMIT_EXCEEDED,
            )
        self.receivers.append(newcomer)

    def _holder(self, epoch: int) -> str:
        return next(r.receiver_name for r in self.receivers if r.epoch == epoch)


def _superseded(receiver: Receiver, newcomer: Receiver) -> AmqpError:
    return AmqpError(
        f"New receiver '{newcomer.receiver_name}' with higher epoch of '{newcomer.epoch}' is created hence current "
        f"receiver '{receiver.receiver_name}' with epoch '{receiver.epoch if receiver.epoch is not None else -1}' is "
        "getting disconnected. If you are recreating the receiver, make sure a higher epoch is used.",
        STOLEN,
    )

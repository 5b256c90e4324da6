"""A parameter server in a process of its own, reached over loopback TCP."""

from __future__ import annotations

import signal
import socket
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext

import numpy as np
import numpy.typing as npt

from repro.measure.processes import end_process

_LEARNING_RATE = np.float32(1e-4)
_CONNECT_S = 60

Values = npt.NDArray[np.float32]


def _serve(port_end: Connection, num_values: int) -> None:
    """Take a step of SGD for each gradient received, and send the new parameters back.

    The process ends when the client closes the connection.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parameters = np.zeros(num_values, np.float32)
    gradients = np.empty(num_values, np.float32)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_CONNECT_S)
        port_end.send(server.getsockname()[1])
        client, _ = server.accept()
    with client:
        client.settimeout(None)
        if not _receive(client, parameters):
            return
        while _receive(client, gradients):
            parameters -= _LEARNING_RATE * gradients
            client.sendall(parameters.data.cast("B"))


def _receive(connection: socket.socket, values: Values) -> bool:
    """Fill an array with bytes of the connection; False if it was closed before."""
    buffer = values.data.cast("B")
    while buffer:
        received = connection.recv_into(buffer)
        if received == 0:
            return False
        buffer = buffer[received:]
    return True


class ParameterServer:
    """Server of the parameters of one job; a context manager that ends its process.

    Parameters
    ----------
    context : SpawnContext
        Context of processes.
    values : ndarray of float32, (parameters,)
        Parameters at the start.
    """

    def __init__(self, context: SpawnContext, values: Values) -> None:
        self._context = context
        self.values = np.ascontiguousarray(values, np.float32)

    def __enter__(self) -> ParameterServer:
        port_end, child_end = self._context.Pipe(duplex=False)
        self._process = self._context.Process(
            target=_serve, args=(child_end, self.values.size), daemon=True
        )
        self._process.start()
        child_end.close()
        try:
            if not port_end.poll(_CONNECT_S):
                raise OSError("the parameter server did not start")
            self._socket = socket.create_connection(("127.0.0.1", port_end.recv()), _CONNECT_S)
            self._socket.settimeout(None)
            self._socket.sendall(self.values.data.cast("B"))
        except BaseException:
            end_process(self._process)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        end_process(self._process)

    def exchange(self, gradients: Values) -> None:
        """Push gradients and pull parameters into `values`."""
        self._socket.sendall(gradients.data.cast("B"))
        if not _receive(self._socket, self.values):
            raise OSError("the parameter server closed the connection")

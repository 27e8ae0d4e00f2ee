"""A cluster of local nodes as one context manager."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams import clock
from streams.errors import ConfigError, StartFailed
from streams.local import config, jars, lock, ports, runtime
from streams.local.folder import Folder
from streams.local.node import Node
from streams.local.ready import ask

START_DEADLINE_S: Final = 90.0  # 3 s on an idle machine; three nodes on two busy cores take 20
_PORT_TRIES: Final = 5
_LOG_OPTIONS: Final = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)


class LocalKafka:
    """A Kafka cluster that lives as long as its owner: this object, and this process.

    Nodes are numbered from 1. Each `heap_mb` of heap means about 120 MB more of memory. `settings`
    are broker settings that replace ours. `listeners` are more ways in for clients, from name to
    security protocol; what those need stands in `settings`. `advertised` are for a listener the ports
    of proxies in front of it, in the order of the nodes: where clients are sent. With `data_dir` the
    data stays there and is found again by the next cluster with as many nodes; without it, it is
    temporary. `port` asks for that port on node 1; all others are free ones. `full_jit` gives the JVM
    its second compiler: slower to start, faster when it has run for a minute (benchmarks).

    Not thread-safe. When the start fails, or the `with` block ends by an exception, the logs are kept.
    """

    def __init__(
        self,
        nodes: int = 1,
        data_dir: Path | None = None,
        heap_mb: int = 256,
        settings: Mapping[str, str] | None = None,
        *,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, Sequence[int]] | None = None,
        port: int | None = None,
        full_jit: bool = False,
    ) -> None:
        if nodes < 1:
            raise ConfigError("must be at least 1", field="nodes", value=nodes)
        self._count = nodes
        self._data_dir = data_dir
        self._settings = dict(settings or {})
        self._listeners = dict(listeners or {})
        self._advertised = dict(advertised or {})
        for listener, told in self._advertised.items():
            if listener not in self._listeners or len(told) != nodes:
                raise ConfigError(f"name {nodes} port(s) of one of `listeners`", field="advertised", value=listener)
        self._port = port
        self._jvm_options = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", *_LOG_OPTIONS]
        if not full_jit:
            self._jvm_options.append("-XX:TieredStopAtLevel=1")
        self._nodes: dict[int, Node] = {}
        self._folder: Folder | None = None

    # --- life

    def open(self) -> None:
        """Start all nodes and wait until they answer. Use `with` instead where you can."""
        assert self._folder is None, "it is open already"
        java = runtime.find_java()
        jar_folder = jars.ensure(lock.load())
        self._folder = Folder.temporary_one() if self._data_dir is None else Folder.chosen(self._data_dir)
        try:
            self._start_all(java, jar_folder, self._folder)
        except BaseException as error:
            self.close(keep_logs=isinstance(error, StartFailed))
            raise

    def close(self, *, keep_logs: bool = False) -> None:
        """Stop all nodes; delete temporary data, but for the logs if asked to keep them."""
        if self._folder is None:
            return
        # Data that nobody will read needs no clean shutdown, which costs a second and more. All at once:
        # one by one, the last nodes would wait for a quorum that is gone.
        end = Node.kill if self._folder.temporary else Node.stop
        with ThreadPoolExecutor(self._count) as pool:
            list(pool.map(end, self._nodes.values()))
        self._folder.release(keep_logs=keep_logs)
        self._folder = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            for node in self._nodes.values():
                error.add_note(f"The log of Kafka node {node.spec.node_id} was kept: {node.log_path}")
        self.close(keep_logs=isinstance(error, Exception))

    # --- what to connect to

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, for `bootstrap.servers`."""
        return ",".join(node.spec.address for node in self._nodes.values())

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of one of the `listeners`, in the order of the nodes, whatever is advertised."""
        found = [each.address for node in self._nodes.values() for each in node.spec.listeners if each.name == listener]
        if not found:
            raise ConfigError(f"there are listeners {sorted(self._listeners)}", field="listener", value=listener)
        return ",".join(found)

    @property
    def pids(self) -> dict[int, int]:
        """The process id of each running node."""
        return {number: node.pid for number, node in self._nodes.items() if node.running}

    def log_path(self, node: int = 1) -> Path:
        return self._node(node).log_path

    # --- faults

    def kill(self, node: int) -> None:
        """`kill -9`; its data stays as it was at that instant."""
        self._node(node).kill()

    def stop(self, node: int) -> None:
        """Shut it down cleanly."""
        self._node(node).stop()

    def start(self, node: int, *, wait: bool = True) -> None:
        """Start a node that was stopped or killed, with its data and its ports; one that runs is left alone.

        Without `wait` it may still be starting; a majority of the nodes must run before any can
        answer, so of two dead out of three the first can't be waited for. Once the second runs too,
        a second call waits for the first.
        """
        target = self._node(node)
        if not target.running:
            target.start()
        if wait:
            self._await([target])

    # --- inside

    def _node(self, number: int) -> Node:
        if number not in self._nodes:
            raise ConfigError(f"there are nodes {sorted(self._nodes)}", field="node", value=number)
        return self._nodes[number]

    def _start_all(self, java: Path, jar_folder: Path, folder: Folder) -> None:
        for attempt in range(1, _PORT_TRIES + 1):
            self._nodes = self._make_nodes(java, jar_folder, folder)
            try:
                self._format()
                for node in self._nodes.values():
                    node.start()
                self._await(list(self._nodes.values()))
            except StartFailed:
                # Somebody took a port after it was found free; any other failure would come again.
                if attempt == _PORT_TRIES or not self._lost_a_port():
                    raise
                for node in self._nodes.values():
                    node.kill()
            else:
                return

    def _make_nodes(self, java: Path, jar_folder: Path, folder: Folder) -> dict[int, Node]:
        if folder.nodes not in {0, self._count}:
            raise ConfigError(f"holds the data of {folder.nodes} node(s)", field="data_dir", value=str(folder.root))
        if self._port is not None and not ports.is_free(self._port):
            raise StartFailed(f"port {self._port} is taken on {ports.LOOPBACK}: choose another, or end what holds it")
        numbers = iter(ports.free_ports((2 + len(self._listeners)) * self._count))
        specs = [
            config.NodeSpec(
                node_id=n + 1,
                port=self._port if self._port is not None and n == 0 else next(numbers),
                controller_port=next(numbers),
                folder=folder.root / f"node-{n + 1}",
                listeners=tuple(
                    config.Listener(name, protocol, next(numbers), self._advertised.get(name, [None] * self._count)[n])
                    for name, protocol in self._listeners.items()
                ),
            )
            for n in range(self._count)
        ]
        nodes = {}
        for spec in specs:
            node = nodes[spec.node_id] = Node(
                spec,
                java=java,
                jars=jar_folder,
                jvm_options=self._jvm_options,
                remove_if_orphaned=folder.root if folder.temporary else None,
                claims=folder.claims,
            )
            node.configure(config.properties(spec, specs, self._settings))
        return nodes

    def _format(self) -> None:
        nodes = self._nodes.values()
        # A format that was broken off has left some of the nodes with an id already.
        cluster_id = next((node.cluster_id() for node in nodes if node.formatted), config.new_cluster_id())
        with ThreadPoolExecutor(self._count) as pool:
            # list() so that the first failure is raised
            list(pool.map(lambda node: node.format(cluster_id), nodes))

    def _await(self, awaited: list[Node]) -> None:
        """Wait until each of these nodes answers clients and is a member of the cluster."""
        expected = {node.spec.node_id for node in awaited}

        def all_ready() -> bool:
            for node in awaited:
                if not node.running:
                    raise node.failure("it ended while starting")
            return all(ports.answers(node.spec.port) and _is_up(node, expected) for node in awaited)

        try:
            clock.wait_until(all_ready, START_DEADLINE_S, what="the local Kafka's start")
        except TimeoutError as error:
            raise awaited[0].failure(f"it was not ready after {START_DEADLINE_S:g} s") from error

    def _lost_a_port(self) -> bool:
        return any("Address already in use" in line for node in self._nodes.values() for line in node.log_lines())


def _is_up(node: Node, expected: set[int]) -> bool:
    """Whether it is this node that answers (another owner's may have its port), and sees the others."""
    answer = ask(node.spec.address)
    return answer.cluster_id == node.cluster_id() and expected <= answer.members

# SPDX-License-Identifier: Apache-2.0
"""The bad network is itself right: each fault does what it says and nothing else."""
import socket
import socketserver
import threading
import time
import unittest

from fault_proxy import FaultProxy


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.connections += 1
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data)
        except OSError:
            pass


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    connections = 0


class FaultProxyTest(unittest.TestCase):
    def setUp(self):
        self.server = EchoServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.proxy = FaultProxy("127.0.0.1", self.server.server_address[1], record=True)
        self.addCleanup(self.proxy.stop)

    def connect(self):
        end = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=60)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.addCleanup(end.close)
        return end

    def receive(self, end, count):
        data = b""
        while len(data) < count and (more := end.recv(count - len(data))):
            data += more
        return data

    def echo(self, end, data):
        end.sendall(data)
        return self.receive(end, len(data))

    def silent(self, end, seconds=0.15):
        end.settimeout(seconds)
        try:
            end.recv(1)
            return False
        except socket.timeout:
            return True
        finally:
            end.settimeout(60)

    def gone(self, end):
        """Reset or ended, within the time a test has."""
        try:
            return end.recv(65536) == b""
        except ConnectionError:
            return True

    def test_without_faults_bytes_pass_and_are_recorded(self):
        big = bytes(range(256)) * 4096
        end = self.connect()
        sender = threading.Thread(target=end.sendall, args=(big,))
        sender.start()
        self.assertEqual(self.receive(end, len(big)), big)
        sender.join()
        end.shutdown(socket.SHUT_WR)
        self.assertEqual(end.recv(1), b"")  # the end of a connection passes too
        self.assertEqual(self.proxy.captured.to_target, big)
        self.assertEqual(self.proxy.captured.from_target, big)
        self.assertIn(big[100:200], self.proxy.captured)
        self.assertNotIn(b"never said", self.proxy.captured)

    def test_delay_is_latency_each_way_and_no_bottleneck(self):
        end = self.connect()
        self.echo(end, b"x")
        self.proxy.delay(0.1)
        start = time.monotonic()
        for _ in range(100):
            end.sendall(b"y" * 100)
            time.sleep(0.002)
        self.assertEqual(self.receive(end, 10000), b"y" * 10000)
        took = time.monotonic() - start
        self.assertGreaterEqual(took, 0.2)
        self.assertLess(took, 5, "a hundred messages wait together, not one after the other, which takes 20 s")

    def test_dropped_connections_end_and_new_ones_work(self):
        end = self.connect()
        self.echo(end, b"x")
        self.proxy.drop_connections()
        self.assertTrue(self.gone(end))
        self.assertEqual(self.echo(self.connect(), b"again"), b"again")
        self.assertEqual(self.proxy.connections, 2)

    def test_partition_holds_bytes_and_new_connections_until_it_ends(self):
        old = self.connect()
        self.echo(old, b"x")
        self.proxy.partition(True)
        new = self.connect()
        old.sendall(b"old")
        new.sendall(b"new")
        self.assertTrue(self.silent(old))
        self.assertTrue(self.silent(new))
        self.assertEqual(self.server.connections, 1, "nobody behind the partition hears of the new one")
        self.assertNotIn(b"old", self.proxy.captured)
        self.proxy.partition(False)
        self.assertEqual(self.receive(old, 3), b"old")
        self.assertEqual(self.receive(new, 3), b"new")

    def test_connections_can_be_dropped_in_a_partition(self):
        end = self.connect()
        self.echo(end, b"x")
        self.proxy.partition(True)
        hanging = self.connect()
        self.assertTrue(self.silent(hanging, 0.05))
        self.proxy.drop_connections()
        self.assertTrue(self.gone(end))
        self.assertTrue(self.gone(hanging))

    def test_cut_forwards_exactly_so_many_bytes_once(self):
        end = self.connect()
        self.echo(end, b"12345678")
        self.proxy.cut_after(3)
        end.sendall(b"abcdef")
        self.assertTrue(self.gone(end))
        self.assertEqual(self.proxy.captured.to_target, b"12345678abc")
        self.assertEqual(self.proxy.cuts, 1)
        self.assertEqual(self.echo(self.connect(), b"whole again"), b"whole again")

    def test_cut_counts_what_comes_back_too(self):
        end = self.connect()
        self.proxy.cut_after(9)
        end.sendall(b"abcdef")
        self.assertEqual(self.receive(end, 6), b"abc")
        self.assertEqual(self.proxy.cuts, 1)

    def test_nobody_behind_the_proxy_means_a_reset(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        with FaultProxy("127.0.0.1", port) as proxy:
            try:
                with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as end:
                    self.assertTrue(self.gone(end))
            except ConnectionResetError:  # already while connecting
                pass
            self.assertEqual(proxy.connections, 1)

    def test_stop_ends_everything_and_may_be_called_twice(self):
        end = self.connect()
        self.echo(end, b"x")
        self.proxy.stop()
        self.proxy.stop()
        self.assertTrue(self.gone(end))
        with self.assertRaises(OSError):
            self.connect()
        self.assertFalse([t for t in threading.enumerate() if t.name == "fault-proxy"])


if __name__ == "__main__":
    unittest.main()

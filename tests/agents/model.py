#!/usr/bin/env python3
"""A model on loopback that plays what it is told, over the wires of three agents' programs.

    model.py FOLDER

reads FOLDER/plays.json anew for each request, writes FOLDER/port once it listens, and notes each request in
FOLDER/asked.jsonl. The last `play:NAME` in the words of a user names a play, a list of steps; as many steps are done as there
are results of tools after these words, so nothing is remembered but how often an error was given.

    {"say": TEXT}           text; {n} in it is how many of the user's words named a play
    {"write": PATH, "text": TEXT}, {"shell": COMMAND}   the program's own tool for that
    {"call": NAME, "input": OBJECT}                     that tool
    {"tool": NAME, "input": OBJECT}                     that tool of the server `aynig`, as the program calls it
    {"think": TEXT, "say": TEXT}                        a thought first, where the wire has one
    {"drip": TEXT}          text in pieces, without end
    {"error": STATUS, "message": TEXT, "times": N, "headers": {}}   for the first N requests, then the next step

Only the standard library is used.
"""

import http.server
import itertools
import json
import os
import re
import socketserver
import sys
import threading
import time

PLAY = re.compile(r"play:([a-z0-9-]+)")
SERIAL = itertools.count(1)
FILES = ("Write", "write_file")
SHELLS = ("Bash", "run_shell_command", "exec_command", "shell_command", "shell")


def words(content):
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def tool_call(step, offered):
    """The name and the input of the tool that a step means; None where it is not offered."""
    if "call" in step:
        return step["call"], step.get("input", {})
    if "tool" in step:
        for name in ("mcp__aynig__" + step["tool"], "mcp_aynig_" + step["tool"]):
            if name in offered:
                return name, step.get("input", {})
        # One program has its model search for tools, and takes their calls unsearched.
        return ("mcp__aynig/" + step["tool"], step.get("input", {})) if "tool_search" in offered else None
    if "write" in step:
        for name in FILES:
            if name in offered:
                return name, {"file_path": step["write"], "content": step["text"]}
        step = {"shell": "mkdir -p \"$(dirname '%s')\"; printf %%s '%s' > '%s'" % (step["write"], step["text"], step["write"])}
    if "shell" in step:
        for name in SHELLS:
            if name == "exec_command" and name in offered:
                # It hands back what is not over by then, and a busy machine is slow.
                return name, {"cmd": step["shell"], "yield_time_ms": 60000}
            if name == "shell" and name in offered:
                return name, {"command": ["bash", "-c", step["shell"]]}
            if name in offered:
                return name, {"command": step["shell"], "description": "as it was told"}
    return None


class Wire:
    """Requests and answers of one program. `turns` are ("user", text) and ("result", "")."""

    def __init__(self, body):
        self.body, self.id = body, "x%06d" % next(SERIAL)
        self.model = body.get("model", "fake")


class Anthropic(Wire):
    def offered(self):
        return [tool.get("name") for tool in self.body.get("tools", [])]

    def turns(self):
        for message in self.body.get("messages", []):
            if message.get("role") != "user":
                continue
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part.get("type") == "tool_result":
                    yield "result", ""
                elif part.get("type") == "text":
                    yield "user", part["text"]

    def error(self, step):
        return {"type": "error", "error": {"type": "rate_limit_error", "message": step["message"]}}

    def stream(self, thought, pieces, call):
        def event(kind, **fields):
            return "event: %s\ndata: %s\n\n" % (kind, json.dumps(dict(type=kind, **fields)))

        usage = {"input_tokens": 11, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        yield event("message_start", message={"id": "msg_" + self.id, "type": "message", "role": "assistant", "model":
                    self.model, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage})
        index = 0
        if thought:
            yield event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""})
            yield event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": thought})
            yield event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2lnbmVk"})
            yield event("content_block_stop", index=0)
            index = 1
        open_text = False
        for piece in pieces:
            if not open_text:
                yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
                open_text = True
            yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        if open_text:
            yield event("content_block_stop", index=index)
            index += 1
        if call:
            yield event("content_block_start", index=index, content_block={"type": "tool_use", "id": "toolu_" + self.id,
                        "name": call[0], "input": {}})
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": json.dumps(call[1])})
            yield event("content_block_stop", index=index)
        yield event("message_delta", delta={"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}, usage=usage)
        yield event("message_stop")

    def whole(self, text, call):
        content = [{"type": "text", "text": text}] if text else []
        if call:
            content.append({"type": "tool_use", "id": "toolu_" + self.id, "name": call[0], "input": call[1]})
        return {"id": "msg_" + self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
                "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 11, "output_tokens": 5}}


class Responses(Wire):
    def offered(self):
        return [tool.get("name") or tool.get("type") for tool in self.body.get("tools", [])]

    def turns(self):
        given = self.body.get("input", [])
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            kind = item.get("type", "message")
            if kind.endswith("_output"):
                yield "result", ""
            elif kind == "message" and item.get("role") == "user":
                yield "user", words(item.get("content"))

    def error(self, step):
        kind = step.get("code", "rate_limit_exceeded")
        return {"error": {"message": step["message"], "type": kind, "code": kind, "param": None}}

    def stream(self, thought, pieces, call):
        order = itertools.count()

        def event(kind, **fields):
            return "event: %s\ndata: %s\n\n" % (kind, json.dumps(dict(type=kind, sequence_number=next(order), **fields)))

        bare = {"id": "resp_" + self.id, "object": "response", "created_at": int(time.time()), "status": "in_progress",
                "model": self.model, "output": [], "usage": None}
        yield event("response.created", response=bare)
        items, index, text = [], 0, []
        if thought:
            item = {"type": "reasoning", "id": "rs_" + self.id, "summary": [{"type": "summary_text", "text": thought}]}
            yield event("response.output_item.added", output_index=0, item=dict(item, summary=[]))
            yield event("response.output_item.done", output_index=0, item=item)
            items.append(item)
            index = 1
        place = dict(item_id="msg_" + self.id, output_index=index, content_index=0)
        for piece in pieces:
            if not text:
                yield event("response.output_item.added", output_index=index, item={"type": "message", "id": place["item_id"],
                            "role": "assistant", "status": "in_progress", "content": []})
            text.append(piece)
            yield event("response.output_text.delta", delta=piece, **place)
        if text:
            items.append({"type": "message", "id": place["item_id"], "role": "assistant", "status": "completed",
                          "content": [{"type": "output_text", "text": "".join(text), "annotations": []}]})
            yield event("response.output_item.done", output_index=index, item=items[-1])
            index += 1
        if call:
            space, _, name = call[0].rpartition("/")
            items.append({"type": "function_call", "id": "fc_" + self.id, "call_id": "call_" + self.id, "name": name,
                          **({"namespace": space} if space else {}),
                          "arguments": json.dumps(call[1]), "status": "completed"})
            yield event("response.output_item.added", output_index=index, item=dict(items[-1], arguments="", status="in_progress"))
            yield event("response.output_item.done", output_index=index, item=items[-1])
        yield event("response.completed", response=dict(bare, status="completed", output=items, usage={
            "input_tokens": 11, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16}))


class Gemini(Wire):
    def offered(self):
        groups = self.body.get("tools") or []
        return [one.get("name") for group in groups for one in group.get("functionDeclarations", [])]

    def turns(self):
        for content in self.body.get("contents", []):
            if content.get("role") == "model":
                continue
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    yield "result", ""
                elif "text" in part:
                    yield "user", part["text"]

    def error(self, step):
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": step["delay"]}] if "delay" in step else []
        return {"error": {"code": step["error"], "message": step["message"], "status": "RESOURCE_EXHAUSTED", "details": details}}

    def part(self, parts, end=None):
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        if end:
            candidate["finishReason"] = end
        return {"candidates": [candidate], "modelVersion": self.model, "responseId": self.id, "usageMetadata": {
            "promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}}

    def stream(self, thought, pieces, call):
        if thought:
            yield "data: %s\n\n" % json.dumps(self.part([{"text": thought, "thought": True}]))
        for piece in pieces:
            yield "data: %s\n\n" % json.dumps(self.part([{"text": piece}]))
        last = [{"functionCall": {"name": call[0], "args": call[1]}}] if call else [{"text": ""}]
        yield "data: %s\n\n" % json.dumps(self.part(last, "STOP"))

    def whole(self, text, call):
        return self.part([{"text": text or "{}"}], "STOP")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send(200, {})

    def do_GET(self):
        self.send(200, {"object": "list", "data": [], "models": []})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if path.endswith(("count_tokens", "countTokens")):
            return self.send(200, {"input_tokens": 11, "totalTokens": 11})
        if path.endswith("/messages"):
            return self.play(Anthropic(body), bool(body.get("stream")))
        if path.endswith("/responses"):
            return self.play(Responses(body), True)
        if "/models/" in path:
            return self.play(Gemini(body), path.endswith("streamGenerateContent"))
        return self.send(404, {"error": {"message": "no such thing here"}})

    def play(self, wire, streams):
        server = self.server
        turns = list(wire.turns())
        named = [at for at, (who, text) in enumerate(turns) if who == "user" and PLAY.search(text)]
        name, done = "none", 0
        if named:
            name = PLAY.findall(turns[named[-1]][1])[-1]
            done = sum(1 for who, _ in turns[named[-1]:] if who == "result")
        with open(os.path.join(server.folder, "plays.json")) as file:
            steps = json.load(file).get(name, [{"say": "Nothing to say."}])
        step = steps[min(done, len(steps) - 1)]
        while "error" in step and server.gave(name, step.get("times", 10**9)):
            done += 1
            step = steps[min(done, len(steps) - 1)]
        server.note({"play": name, "step": done, "path": self.path, "tools": wire.offered(), "key": [
            self.headers.get(key) for key in ("x-api-key", "authorization", "x-goog-api-key") if self.headers.get(key)]})
        if "error" in step:
            return self.send(step["error"], wire.error(step), step.get("headers", {}))
        call = tool_call(step, wire.offered())
        text = step.get("say", "").replace("{n}", str(len(named)))
        if call is None and not text and "drip" not in step:
            text = "There is no such tool."
        if not streams:
            return self.send(200, wire.whole(text or step.get("drip", ""), call))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = self.drip(step["drip"]) if "drip" in step else [text[i:i + 16] for i in range(0, len(text), 16)]
        try:
            for sent in wire.stream(step.get("think"), pieces, call):
                data = sent.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def drip(self, text):
        for number in itertools.count(1):
            # Numbered: a program may stop a model that repeats itself.
            yield "%s %d\n" % (text, number)
            time.sleep(0.1)

    def send(self, status, value, headers=()):
        data = json.dumps(value).encode()
        self.send_response(status)
        for key, text in dict(headers).items():
            self.send_header(key, str(text))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.lock, self.given = folder, threading.Lock(), {}

    def server_bind(self):
        # Without a look-up of the own host's name.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, *_):
        pass

    def gave(self, name, times):
        """Whether an error was given so often; it is counted if not."""
        with self.lock:
            count = self.given.get(name, 0)
            self.given[name] = min(count + 1, times)
            return count >= times

    def note(self, entry):
        with self.lock, open(os.path.join(self.folder, "asked.jsonl"), "a") as file:
            file.write(json.dumps(entry) + "\n")


def main():
    folder = sys.argv[1]
    server = Server(folder)
    with open(os.path.join(folder, "port.part"), "w") as file:
        file.write("%d" % server.server_port)
    os.replace(os.path.join(folder, "port.part"), os.path.join(folder, "port"))
    server.serve_forever()


if __name__ == "__main__":
    main()

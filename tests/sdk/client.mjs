// The official TypeScript SDK as an editor: one turn, in which it allows what it is asked.
//   node client.mjs SDK_FOLDER WORKSPACE SESSION AGENT ARGUMENTS...
// SESSION is the stored one to load first, or "new".
// Prints one JSON object: the sessions it found and its own, what it was asked, what it was shown
// by the load and by the turn, how the turn ended.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, stored, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(join(sdk, "dist/v1/stable/acp.js")));
const agent = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
let shown = {};
const { agent: calls, client: offers } = acp.methods;

const editor = acp
  .client({ name: "test" })
  .onRequest(offers.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall.title);
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onNotification(offers.session.update, ({ params }) => {
    const kind = params.update.sessionUpdate;
    shown[kind] = (shown[kind] ?? 0) + 1;
  });

async function open(connection) {
  const workspace = { cwd, mcpServers: [] };
  if (stored === "new") {
    return (await connection.request(calls.session.new, workspace)).sessionId;
  }
  await connection.request(calls.session.load, { sessionId: stored, ...workspace });
  return stored;
}

// The SDK may deliver updates after the answer that followed them on the wire.
const delivered = () => new Promise((resolve) => setTimeout(resolve, 100));

const line = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await editor.connectWith(line, async (connection) => {
  const hello = await connection.request(calls.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "test", version: "1" },
    clientCapabilities: {},
  });
  const { sessions } = await connection.request(calls.session.list, { cwd });
  const sessionId = await open(connection);
  await delivered();
  const loaded = shown;
  shown = {};
  const prompt = [{ type: "text", text: "Run it" }];
  const { stopReason } = await connection.request(calls.session.prompt, { sessionId, prompt });
  await delivered();
  const version = hello.protocolVersion;
  console.log(JSON.stringify({ version, sessions, sessionId, asked, loaded, shown, stopReason }));
});
agent.stdin.end();
const code = await new Promise((resolve) => agent.on("exit", resolve));
process.exit(code);

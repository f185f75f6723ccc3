// The official TypeScript SDK as an editor that is asked before every edit and command.
//   node turns.mjs SDK_FOLDER WORKSPACE CANCELLED PROMPTS AGENT ARGUMENTS...
// PROMPTS is a JSON list. The first time it is asked about the command CANCELLED, it cancels the
// turn; everything else it allows.
// Prints one JSON object: what it was asked, and how each turn ended.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, cancelled, prompts, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(join(sdk, "dist/v1/stable/acp.js")));
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const { agent: calls, client: offers } = acp.methods;
const asked = [];
let agentSide;

const editor = acp
  .client({ name: "test" })
  .onRequest(offers.session.requestPermission, async ({ params }) => {
    const { title } = params.toolCall;
    const first = !asked.includes(title);
    asked.push(title);
    if (title === cancelled && first) {
      await agentSide.notify(calls.session.cancel, { sessionId: params.sessionId });
      return { outcome: { outcome: "cancelled" } };
    }
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onNotification(offers.session.update, () => {});

const line = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await editor.connectWith(line, async (connection) => {
  agentSide = connection;
  await connection.request(calls.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessionId } = await connection.request(calls.session.new, { cwd, mcpServers: [] });
  const ask = { sessionId, configId: "permission", value: "ask" };
  await connection.request(calls.session.setConfigOption, ask);
  const reasons = [];
  for (const text of JSON.parse(prompts)) {
    const prompt = [{ type: "text", text }];
    const { stopReason } = await connection.request(calls.session.prompt, { sessionId, prompt });
    reasons.push(stopReason);
  }
  console.log(JSON.stringify({ asked, reasons }));
});
agent.stdin.end();
const code = await new Promise((resolve) => agent.on("exit", resolve));
process.exit(code);

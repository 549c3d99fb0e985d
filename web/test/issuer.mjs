// An MCP server that requires a sign-in, with its authorization server. Clients register. Codes are
// bound to PKCE and a redirect address and work once.
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { Gates } from "./mcpserver.mjs";

export class Guarded extends Gates {
  clients = new Map();
  codes = new Map();
  tokens = new Set();

  static async start() {
    const guarded = new Guarded();
    guarded.server = createServer((req, res) => guarded.route(req, res)).listen(0, "127.0.0.1");
    await once(guarded.server, "listening");
    guarded.origin = `http://127.0.0.1:${guarded.server.address().port}`;
    guarded.url = `${guarded.origin}/mcp`;
    return guarded;
  }

  async route(req, res) {
    const at = new URL(req.url, this.origin);
    const say = (status, body, headers) =>
      res.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
    if (at.pathname === "/mcp") {
      if (this.tokens.has(req.headers.authorization?.replace("Bearer ", ""))) return this.serve(req, res);
      return say(
        401,
        {},
        { "WWW-Authenticate": `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"` },
      );
    }
    if (at.pathname === "/.well-known/oauth-protected-resource/mcp")
      return say(200, { resource: this.url, authorization_servers: [this.origin], scopes_supported: ["gates"] });
    if (at.pathname === "/.well-known/oauth-authorization-server") return say(200, this.about());
    if (at.pathname === "/authorize") return this.authorize(at.searchParams, res);
    let text = "";
    for await (const part of req) text += part;
    if (at.pathname === "/register") return say(201, this.register(JSON.parse(text)));
    if (at.pathname === "/token") return this.token(new URLSearchParams(text), say);
    if (at.pathname === "/revoke")
      return say(200, { gone: this.tokens.delete(new URLSearchParams(text).get("token")) });
    say(404, {});
  }

  about() {
    const o = this.origin;
    return {
      issuer: o,
      authorization_endpoint: `${o}/authorize`,
      token_endpoint: `${o}/token`,
      registration_endpoint: `${o}/register`,
      revocation_endpoint: `${o}/revoke`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  register({ redirect_uris }) {
    const client_id = randomUUID();
    this.clients.set(client_id, redirect_uris);
    return { client_id, redirect_uris, token_endpoint_auth_method: "none" };
  }

  /** authorize shows the consent page. */
  authorize(q, res) {
    const back = (more) =>
      `${q.get("redirect_uri")}?${new URLSearchParams({ state: q.get("state"), iss: this.origin, ...more })}`.replaceAll(
        "&",
        "&amp;",
      );
    if (!this.clients.get(q.get("client_id"))?.includes(q.get("redirect_uri"))) return res.writeHead(400).end();
    const code = randomUUID();
    this.codes.set(code, q);
    res
      .writeHead(200, { "Content-Type": "text/html" })
      .end(
        `<title>Gates</title><link rel="icon" href="data:,"><a href="${back({ code })}">Allow</a> <a href="${back({ error: "access_denied" })}">Refuse</a>`,
      );
  }

  token(form, say) {
    const asked = this.codes.get(form.get("code"));
    this.codes.delete(form.get("code"));
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (!asked || asked.get("code_challenge") !== challenge || asked.get("redirect_uri") !== form.get("redirect_uri"))
      return say(400, { error: "invalid_grant" });
    const token = randomUUID();
    this.tokens.add(token);
    say(200, { access_token: token, token_type: "Bearer", expires_in: 3600, scope: "gates" });
  }
}

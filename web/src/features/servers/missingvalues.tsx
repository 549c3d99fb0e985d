import { msg } from "../../shared/i18n/messages";
import { href, type Server } from "./state";

/** Missing lists the missing values of a server, and links to where to set them. */
export function Missing({ server, elsewhere }: { server: Server; elsewhere?: boolean }) {
  if (!server.missing?.length) return null;
  const known = (server.uses ?? []).filter((u) => server.missing!.some((m) => m.includes(`.${u.name}}}`)));
  const others = server.missing.filter((m) => !known.some((u) => m.includes(`.${u.name}}}`))); // such as environment variables, which the hub explains
  return (
    <div class={elsewhere ? "note warn small" : "stack tight small"}>
      {known.map((u) => (
        <span key={u.kind + u.name + u.where}>{msg("servers.noValue", { name: u.name, where: u.where })}</span>
      ))}
      {others.map((m) => (
        <span key={m}>{m}</span>
      ))}
      {elsewhere && known.length > 0 && <a href={href(server) + "#variables"}>{msg("servers.giveThere")}</a>}
    </div>
  );
}

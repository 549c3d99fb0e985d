import type { Schema } from "../../shared/api/client";
import { Markdown } from "../../shared/content";
import { formatTime, size } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Icon } from "../../shared/ui";
import "./sharing.css";

type Message = Schema["SharedMessage"];
type Call = NonNullable<Message["calls"]>[number];

interface SharedViewProps {
  content: Schema["SharedContent"];
  level: 2 | 3;
  /** imageAddress returns where the image of a message is. */
  imageAddress: (ref: string) => string;
  /** fileAddress returns where a file is. A preview has none. */
  fileAddress?: (ref: string) => string;
}

/** SharedView shows the content of a shared conversation. Nothing in it can be changed. */
export function SharedView({ content, level, imageAddress, fileAddress }: SharedViewProps) {
  const Heading = `h${level}` as "h2" | "h3";
  const files = content.files ?? [];
  if (!content.messages.length && !files.length) return <p class="muted">{msg("share.empty")}</p>;
  return (
    <div class="shared-messages">
      {content.messages.map((m, i) => (
        <article key={i} class="shared-message">
          <Heading class="visually-hidden">
            {msg(m.role === "user" ? "share.question" : "share.answer", { n: i + 1 })}
          </Heading>
          {m.role === "user" ? (
            <Question message={m} imageAddress={imageAddress} />
          ) : (
            <Answer message={m} level={level + 1} />
          )}
        </article>
      ))}
      {files.length > 0 && (
        <section>
          <Heading>{msg("share.files")}</Heading>
          <ul class="shared-files">
            {files.map((f) => (
              <li key={f.path}>
                <Icon name="file" size={14} />{" "}
                {fileAddress ? (
                  <a href={fileAddress(f.ref)} download={f.path.split("/").at(-1)}>
                    {f.path}
                  </a>
                ) : (
                  f.path
                )}{" "}
                <span class="small muted">
                  {size(f.size)}
                  {!fileAddress && " · " + checkedText(f)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** checkedText says whether a file was searched for secrets, and what was found. */
function checkedText({ checked, redacted }: NonNullable<Schema["SharedContent"]["files"]>[number]) {
  if (!checked) return msg("share.fileUnchecked");
  return redacted ? msg("share.redacted", { count: redacted }) : msg("share.fileClean");
}

function Question({ message, imageAddress }: { message: Message; imageAddress: SharedViewProps["imageAddress"] }) {
  return (
    <div class="shared-question" title={formatTime(message.time)}>
      <Skills names={message.skills} />
      {message.text && <div class="text">{message.text}</div>}
      {message.images?.map((image, i) => (
        <img
          key={i}
          class="shared-image"
          alt={image.name || msg("share.image", { n: i + 1 })}
          src={imageAddress(image.ref ?? "")}
        />
      ))}
    </div>
  );
}

function Answer({ message, level }: { message: Message; level: number }) {
  return (
    <div class="stack tight">
      {message.calls?.map((call, i) => (
        <CallLine key={i} call={call} />
      ))}
      {message.text && <Markdown text={message.text} level={level} breaks formulas />}
      {message.images?.map((image, i) => (
        <img
          key={i}
          class="shared-image"
          alt={msg("share.image", { n: i + 1 })}
          src={`data:${image.mime_type};base64,${image.data}`}
        />
      ))}
      <Skills names={message.skills} />
      {message.text && message.model && <p class="small muted">{message.model}</p>}
    </div>
  );
}

/** CallLine names the tool of a call and its object. */
function CallLine({ call }: { call: Call }) {
  const does = findMsg("chat.call", call.name) ?? msg("chat.called", { tool: call.name.replace("__", ": ") });
  return (
    <p class="shared-call small muted">
      <Icon name="tool" size={14} /> {does}
      {call.what && <code>{call.what}</code>}
      {call.error && <span> · {msg("share.callFailed")}</span>}
    </p>
  );
}

function Skills({ names = [] }: { names?: string[] | null }) {
  if (!names?.length) return null;
  return (
    <p class="small muted">
      <Icon name="library" size={14} /> {msg("share.skills", { names: names.join(", ") })}
    </p>
  );
}

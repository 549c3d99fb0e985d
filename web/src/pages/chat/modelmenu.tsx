import { dollars, short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Icon, Menu, MenuItem } from "../../shared/ui";
import { type Model, modelFor, serverOrVendorOf, titleOf } from "./models";

interface ModelMenuProps {
  models: Model[];
  /** The ID of the chosen model, or "" for the default. */
  chosen: string;
  onChoose: (id: string) => void;
}

/** ModelMenu shows the model for the next message, and lists the others. */
export function ModelMenu({ models, chosen, onChoose }: ModelMenuProps) {
  const model = modelFor(models, chosen);
  const name = model ? titleOf(model) : msg("chat.modelGone");
  if (model && models.length === 1)
    return (
      <span class="chat-model small muted truncate" title={[name, ...detailsOf(model)].join(" · ")}>
        {name}
      </span>
    );
  return (
    <div class="chat-model">
      <Menu
        small
        place="start up"
        icon={model ? "down" : "warn"}
        label={msg("chat.modelMenu", { name })}
        text={<span class="truncate">{name}</span>}
      >
        {models.map((m, i) => (
          <MenuItem key={m.id ?? ""} off={m.key === "missing"} onClick={() => onChoose(i === 0 ? "" : (m.id ?? ""))}>
            <span class="chat-model-item">
              <strong>{titleOf(m)}</strong>
              {m === model && <Icon name="check" size={14} />}
              {m === model && <span class="visually-hidden">{msg("chat.modelInUse")}</span>}
              <span class="small muted">
                {[i === 0 && msg("chat.modelDefault"), ...detailsOf(m)].filter(Boolean).join(" · ")}
              </span>
            </span>
          </MenuItem>
        ))}
      </Menu>
    </div>
  );
}

/** detailsOf describes a model: its name and server, context window, price, and whether it reads images. */
function detailsOf(m: Model): string[] {
  const price = m.price && {
    input: dollars(m.price.input),
    output: dollars(m.price.output),
  };
  return [
    m.name && m.name !== "default" && m.name !== titleOf(m) ? m.name : "",
    serverOrVendorOf(m),
    m.window ? msg("chat.modelWindow", { n: short(m.window) }) : "",
    price ? msg("chat.modelPrice", price) : "",
    msg(m.images ? "chat.modelImages" : "chat.modelNoImages"),
    m.key === "missing" ? msg("chat.modelNoKey") : "",
  ].filter(Boolean);
}

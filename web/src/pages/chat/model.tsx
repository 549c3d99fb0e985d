import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Submit, useSend } from "../../features/users/form";
import { api, got, Refusal } from "../../shared/api/client";
import { isAdmin, ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Problem, SelectField, TextField } from "../../shared/ui";
import { useMedia } from "./drawer";
import { loadModels, type Model, modelsFailure, serverOrVendorOf, setDefaultModel, useModels } from "./models";

const isDemo = (m: Model) => m.vendor === "demo";

/**
 * OwnModel names the model in use. Without one, it offers administrators to connect one. It says why the models for the
 * agent are unknown.
 */
export function OwnModel({ agent }: { agent: string }) {
  const failed = [...new Set(["", agent])].filter((a) => modelsFailure(a) !== undefined);
  return (
    <>
      {failed.slice(0, 1).map((a) => (
        <Problem key={a} error={modelsFailure(a)} again={() => void loadModels(a)} />
      ))}
      <Own />
    </>
  );
}

function Own() {
  const [editing, setEditing] = useState(false);
  const closed = useRef(false); // the form was cancelled, so the button that opened it gets the focus
  const opener = useRef<HTMLDivElement>(null);
  const fits = useMedia("(min-width: 60rem) and (min-height: 36rem)"); // the form fits above the message input
  const open = () => setEditing(true);
  useLayoutEffect(() => {
    if (closed.current) opener.current?.querySelector("button")?.focus();
    closed.current = false;
  }, [editing]);
  const model = useModels("")?.[0];
  if (!model) return null;
  if (isDemo(model) && !isAdmin.value) return <p class="note">{msg("chat.noModelAsk")}</p>;
  if (isDemo(model) && !fits && !editing)
    return (
      <div class="note stack">
        <p>{msg("chat.noModel")}</p>
        <div ref={opener}>
          <Button look="primary" onClick={open}>
            {msg("chat.connectModel")}
          </Button>
        </div>
      </div>
    );
  if (isDemo(model) || editing)
    return (
      <Connect
        current={isDemo(model) ? undefined : model}
        onConnected={(m) => {
          setDefaultModel(m);
          setEditing(false);
          document.querySelector<HTMLElement>(".chat-input")?.focus();
        }}
        onCancel={
          editing
            ? () => {
                closed.current = true;
                setEditing(false);
              }
            : undefined
        }
      />
    );
  return (
    <>
      <div class="row small muted chat-own-model" ref={opener}>
        <span>
          {msg("chat.model")}: <strong>{model.model}</strong> · {serverOrVendorOf(model)}
        </span>
        {isAdmin.value && model.name && (
          <Button small look="quiet" onClick={open}>
            {msg("chat.changeModel")}
          </Button>
        )}
      </div>
      {model.key === "missing" && <p class="note warn">{msg("chat.modelKeyMissing")}</p>}
    </>
  );
}

type Provider = "anthropic" | "openai" | "ollama" | "other";

/** providers returns the providers to choose from. A hub with accounts connects only to public addresses by itself. */
const providers = (): Provider[] =>
  ways.value?.mode === "single" ? ["anthropic", "openai", "ollama", "other"] : ["anthropic", "openai", "other"];
const addresses: Partial<Record<Provider, string>> = { ollama: "http://127.0.0.1:11434/v1", other: "" };

function providerOf(model: Model): Provider {
  if (!model.base_url) return model.vendor === "openai" ? "openai" : "anthropic";
  return model.base_url === addresses.ollama && providers().includes("ollama") ? "ollama" : "other";
}

/** isTaken reports whether the hub asks before it replaces the model of all users. */
const isTaken = (error: unknown): error is Refusal => error instanceof Refusal && error.problem.code === "model_exists";

/** isNoList reports whether a server did not list its models, as with a key for requests only. */
const isNoList = (error: unknown) => error instanceof Refusal && error.problem.code === "model_list";

/** With more models than this, the list has a filter. */
const manyModels = 20;

/**
 * Connect connects a model for all users: it lists the models of a server, tests one, and stores its key. The form
 * starts with the values of the current model, but without its key, which is never read back.
 */
function Connect(props: { current?: Model; onConnected: (m: Model) => void; onCancel?: () => void }) {
  const { current, onConnected, onCancel } = props;
  const [provider, setProvider] = useState(current ? providerOf(current) : "anthropic");
  const [address, setAddress] = useState(current?.base_url ?? "");
  const [key, setKey] = useState("");
  const [name, setName] = useState(current?.model ?? "");
  const [window, setWindow] = useState(current?.base_url ? String(current.window ?? "") : "");
  const [names, setNames] = useState<string[]>();
  const [filter, setFilter] = useState("");
  const matching = names?.filter((n) => n === name || n.toLowerCase().includes(filter.trim().toLowerCase())) ?? [];
  const own = addresses[provider] === undefined; // the vendor's own server
  const ready = !names || !!name.trim();
  const change = (set: () => void) => {
    set();
    setNames(undefined);
    setName("");
    setFilter("");
    setTaken(undefined);
  };
  const [taken, setTaken] = useState<Refusal>(); // the hub asks before it replaces the model of all users
  const agreed = useRef<Refusal | undefined>(undefined); // the question that the user answers with the request
  const { send, busy, error } = useSend(async () => {
    const replaced = agreed.current && { replace: true, replace_digest: agreed.current.problem.digest };
    const server = {
      vendor: provider === "anthropic" ? ("anthropic" as const) : ("openai" as const),
      ...(!own && { base_url: address.trim() }),
      ...(key.trim() && { key: key.trim() }),
    };
    const size = !own && window.trim() ? { window: Number(window) } : {};
    let model = name.trim();
    if (!names) {
      const { items } = await got(api.POST("/api/v1/models/offered", { body: server })).catch((refused: unknown) => {
        if (isNoList(refused)) setNames([]); // the user can enter a name; the connection test decides
        throw refused;
      });
      setNames(items);
      if (items.length === 1) model = items[0]!;
      else if (items.length && !items.includes(model)) model = "";
      setName(model);
      if (items.length !== 1) return;
    }
    const connected = await got(
      api.PUT("/api/v1/models/default", { body: { ...server, model, ...size, ...replaced } }),
    ).catch((refused: unknown) => {
      if (isTaken(refused)) setTaken(refused);
      throw refused;
    });
    done(msg("chat.modelConnected", { name: model }));
    onConnected(connected);
  });
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    if (onCancel) form.current?.querySelector("select")?.focus(); // its button is gone
  }, []);
  useLayoutEffect(() => {
    if (names) (form.current?.elements.namedItem("model") as HTMLElement | null)?.focus();
  }, [names]);
  return (
    <form
      ref={form}
      class="card stack chat-connect"
      aria-label={msg("chat.connectModel")}
      onSubmit={(e) => void send(e)}
    >
      <h2>{msg("chat.connectModel")}</h2>
      {!current && <p class="small muted">{msg("chat.noModel")}</p>}
      {ways.value?.mode !== "single" && <p class="small muted">{msg("chat.modelForAll")}</p>}
      <div class="halves">
        <SelectField
          label={msg("chat.provider")}
          value={provider}
          options={providers().map((p) => [p, msg(`chat.providers.${p}`)])}
          onText={(p) =>
            change(() => {
              setProvider(p as Provider);
              setWindow("");
              setAddress(addresses[p as Provider] ?? "");
            })
          }
        />
        {!own && (
          <TextField
            label={msg("chat.modelAddress")}
            value={address}
            type="url"
            required
            maxLength={2048}
            placeholder="https://models.example.com/v1"
            onText={(text) =>
              change(() => {
                setAddress(text);
                setWindow(""); // it was that of a model of the previous server
              })
            }
          />
        )}
        <TextField
          label={own ? msg("chat.modelKey") : msg("chat.modelKeyOptional")}
          hint={msg("chat.modelKeyHint")}
          value={key}
          type="password"
          autoComplete="off"
          required={own}
          maxLength={4096}
          onText={(text) => change(() => setKey(text))}
        />
        {!own && (
          <TextField
            label={msg("chat.modelWindowField")}
            hint={msg("chat.modelWindowHint")}
            value={window}
            type="number"
            inputMode="numeric"
            min={1}
            max={100_000_000}
            onText={setWindow}
          />
        )}
        {names &&
          (names.length ? (
            <>
              {names.length > manyModels && (
                <TextField
                  label={msg("chat.filterModels")}
                  value={filter}
                  type="search"
                  onText={setFilter}
                  onKeyDown={(e) => {
                    if (e.key === "Enter") e.preventDefault(); // it would connect the selected model
                  }}
                />
              )}
              <SelectField
                label={msg("chat.model")}
                name="model"
                value={name}
                options={[["", msg("chat.chooseModel")], ...matching.map((n): [string, string] => [n, n])]}
                onText={setName}
              />
            </>
          ) : (
            <TextField
              label={msg("chat.model")}
              name="model"
              hint={msg("chat.modelNotListed")}
              value={name}
              required
              maxLength={256}
              onText={setName}
            />
          ))}
      </div>
      {taken && (
        <div class="note warn stack tight" role="alert">
          {taken.message}
          <div>
            <Button
              small
              aria-disabled={busy || !ready || undefined}
              onClick={(e) => {
                if (!ready) return;
                agreed.current = taken;
                e.currentTarget.form!.requestSubmit(); // unless a field is invalid
                agreed.current = undefined;
              }}
            >
              {msg("chat.replaceModel")}
            </Button>
          </div>
        </div>
      )}
      {error !== undefined && !isTaken(error) && <Problem error={error} />}
      <div class="row">
        <Submit busy={busy} disabled={!ready}>
          {names ? msg("chat.connect") : msg("chat.connectNext")}
        </Submit>
        {busy && (
          <span class="small muted" role="status">
            {names ? msg("chat.testingModel") : msg("ui.loading")}
          </span>
        )}
        {onCancel && <Button onClick={onCancel}>{msg("ui.cancel")}</Button>}
      </div>
    </form>
  );
}

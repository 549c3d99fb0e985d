import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, done, SelectField, Shown, Tag, TextField, useConfirm } from "../../shared/ui";
import { secretReference } from "../servers/config";
import { addSecretPage } from "../settings/secretpage";
import { SpecField } from "./bot";
import { pathOf, type ModelSpec, type ResourceRef } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { Description } from "./naming";
import { vendorOptions } from "./phrases";
import { useSecrets } from "./secrets";

const named = (key: string | undefined) => /^\$\{\{\s*secrets\.([A-Za-z0-9_.-]+)\s*\}\}$/.exec(key ?? "")?.[1];

/** ModelBasis edits the vendor, address and key of a model. */
export function ModelBasis(part: PartProps) {
  const spec = part.draft.doc.spec as ModelSpec;
  const secrets = useSecrets(part.draft.doc.metadata.namespace);
  const name = named(spec.apiKey);
  const options: [string, string][] = [
    ["", msg("agents.noKey")],
    ...[...new Set([...secrets.map((s) => s.name), ...(name ? [name] : [])])].map((s): [string, string] => [s, s]),
  ];
  const saved = (part.base.spec as ModelSpec).apiKey === spec.apiKey;
  const keyFault = useFault("spec.apiKey");
  const windowFault = useFault("spec.window");
  const specFault = useFault("spec");
  const vendorFault = useFault("spec.vendor") ?? specFault;
  return (
    <section class="stack">
      <Description {...part} />
      <div class="halves">
        <SelectField
          label={msg("agents.vendor")}
          value={spec.vendor ?? ""}
          options={vendorOptions()}
          error={vendorFault}
          onText={(vendor) => part.draft.spec({ vendor })}
        />
        {spec.vendor !== "demo" && (
          <SpecField part={part} name="model" label={msg("agents.modelName")} hint={msg("agents.modelNameHint")} />
        )}
      </div>
      {spec.vendor !== "demo" && (
        <>
          <SpecField
            part={part}
            name="baseUrl"
            label={msg("agents.baseUrl")}
            hint={msg("agents.baseUrlHint")}
            placeholder="https://api.example.com/v1"
          />
          <TextField
            label={msg("chat.modelWindowField")}
            hint={msg("agents.windowHint")}
            value={String(spec.window ?? "")}
            type="number"
            inputMode="numeric"
            min={1}
            max={100_000_000}
            error={windowFault}
            onText={(to) => part.draft.spec({ window: to ? Number(to) : undefined })}
          />
          <SelectField
            label={msg("agents.key")}
            hint={
              <>
                {msg("agents.keyHint")} <a href="/settings/secrets">{msg("servers.keepSecret")}</a>
              </>
            }
            value={name ?? ""}
            options={options}
            error={keyFault}
            onText={(to) => part.draft.spec({ apiKey: to ? secretReference(to) : undefined })}
          />
          {part.place && name && saved && (
            <Key
              place={part.place}
              name={name}
              target={spec.baseUrl || msg("agents.vendorsOwn")}
              owner={secrets.find((s) => s.name === name)?.owner}
            />
          )}
        </>
      )}
    </section>
  );
}

/** Key shows whether a model has its key, and grants it. */
function Key({ place, name, target, owner }: { place: ResourceRef; name: string; target: string; owner?: string }) {
  const confirm = useConfirm();
  const query = { owner: owner ?? "default" };
  const load = useLoad(
    async (signal) => {
      const saved = await got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place), signal }));
      const { data } = await api.GET("/api/v1/secrets/{secret}/grants", {
        params: { path: { secret: name }, query },
        signal,
      });
      const digest = saved.status.digest ?? "";
      return { digest, given: data?.items.some((g) => g.digest === digest) ?? false };
    },
    [place.name, place.namespace, name, owner],
  );
  if (!owner)
    return (
      <p class="note warn">
        {msg("agents.noSuchSecret", { name })}{" "}
        <a href={addSecretPage(name, place.namespace)}>{msg("servers.keepIt")}</a>
      </p>
    );
  const give = async (digest: string) => {
    await got(
      api.POST("/api/v1/secrets/{secret}/grants", {
        params: { path: { secret: name }, query },
        body: { kind: "Model", namespace: place.namespace, name: place.name, digest },
      }),
    );
    done(msg("servers.gave", { name }));
    await load.again();
  };
  return (
    <Shown asked={load}>
      {({ digest, given }) =>
        given ? (
          <p>
            <Tag look="good">{msg("agents.keyGiven", { name })}</Tag>
          </p>
        ) : (
          <div class="note warn">
            {confirm.open}
            <p>{msg("agents.keyNotGiven", { name })}</p>
            <div>
              <Button
                small
                icon="key"
                onClick={() =>
                  confirm.ask({
                    title: msg("agents.giveKey", { name }),
                    children: <p>{msg("agents.giveKeySays", { name, to: target })}</p>,
                    yes: msg("servers.give"),
                    act: () => give(digest),
                  })
                }
              >
                {msg("servers.give")}
              </Button>
            </div>
          </div>
        )
      }
    </Shown>
  );
}

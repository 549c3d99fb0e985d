import { api, got, useAsked } from "../api/client";
import { Button, done, SelectField, Shown, Tag, useConfirm } from "../ui";
import { secretReference } from "../servers/config";
import { w as servers } from "../servers/words";
import { Description } from "./basics";
import { SpecField } from "./bot";
import { pathOf, type ModelSpec, type Place } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { useSecrets } from "./secrets";
import { w } from "./words";

const named = (key: string | undefined) => /^\$\{\{\s*secrets\.([A-Za-z0-9_.-]+)\s*\}\}$/.exec(key ?? "")?.[1];

/** Which language model it is, where it answers, and which secret is its key. */
export function ModelBasis(part: PartProps) {
  const t = w();
  const spec = part.draft.doc.spec as ModelSpec;
  const secrets = useSecrets(part.draft.doc.metadata.namespace);
  const name = named(spec.apiKey);
  const options: [string, string][] = [["", t.noKey], ...[...new Set([...secrets.map((s) => s.name), ...(name ? [name] : [])])].map((s): [string, string] => [s, s])];
  const kept = (part.base.spec as ModelSpec).apiKey === spec.apiKey;
  const vendorFault = useFault("spec.vendor") ?? useFault("spec");
  return (
    <section class="stack">
      <Description {...part} />
      <div class="halves">
        <SelectField label={t.vendor} value={spec.vendor ?? ""} options={t.vendors} error={vendorFault} onText={(vendor) => part.draft.spec({ vendor })} />
        {spec.vendor !== "demo" && <SpecField part={part} name="model" label={t.modelName} hint={t.modelNameHint} />}
      </div>
      {spec.vendor !== "demo" && (
        <>
          <SpecField part={part} name="baseUrl" label={t.baseUrl} hint={t.baseUrlHint} placeholder="https://api.example.com/v1" />
          <SelectField label={t.key} hint={<>{t.keyHint} <a href="/settings/secrets">{servers().keepSecret}</a></>} value={name ?? ""} options={options} error={useFault("spec.apiKey")} onText={(to) => part.draft.spec({ apiKey: to ? secretReference(to) : undefined })} />
          {part.place && name && kept && <Key place={part.place} name={name} target={spec.baseUrl || t.vendorsOwn} owner={secrets.find((s) => s.name === name)?.owner} />}
        </>
      )}
    </section>
  );
}

/** Whether a Model as it is now has its key, and the way to give it. */
function Key({ place, name, target, owner }: { place: Place; name: string; target: string; owner?: string }) {
  const t = w();
  const confirm = useConfirm();
  const query = { owner: owner ?? "default" };
  const asked = useAsked(async (signal) => {
    const kept = await got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place), signal }));
    const { data } = await api.GET("/api/v1/secrets/{secret}/grants", { params: { path: { secret: name }, query }, signal });
    const digest = kept.status.digest ?? "";
    return { digest, given: data?.items.some((g) => g.digest === digest) ?? false };
  }, [place.name, place.namespace, name, owner]);
  if (!owner) return <p class="note warn">{t.noSuchSecret(name)} <a href={`/settings/secrets?name=${encodeURIComponent(name)}`}>{servers().keepIt}</a></p>;
  const give = async (digest: string) => {
    await got(api.POST("/api/v1/secrets/{secret}/grants", { params: { path: { secret: name }, query }, body: { kind: "Model", namespace: place.namespace, name: place.name, digest } }));
    done(servers().gave(name));
    await asked.again();
  };
  return (
    <Shown asked={asked}>
      {({ digest, given }) => given
        ? <p><Tag look="good">{t.keyGiven(name)}</Tag></p>
        : <div class="note warn">{confirm.open}<p>{t.keyNotGiven(name)}</p><div><Button small icon="key" onClick={() => confirm.ask({ title: t.giveKey(name), children: <p>{t.giveKeySays(name, target)}</p>, yes: servers().give, act: () => give(digest) })}>{servers().give}</Button></div></div>}
    </Shown>
  );
}

import { useState } from "preact/hooks";
import { api, got, Refusal, type Schema, useLoad } from "../../shared/api/client";
import { formatTime, size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Check, Copy, Dialog, Problem, SelectField, Shown } from "../../shared/ui";
import { SharedView } from "./sharedview";
import { addressOf, audienceText, type Share, ShareTable, useShares } from "./shares";

interface ShareDialogProps {
  session: string;
  title: string;
  onClose: () => void;
}

/**
 * ShareDialog shows what a share of a conversation would contain, shares it after a
 * confirmation, and lists the shares that exist.
 */
export default function ShareDialog({ session, title, onClose }: ShareDialogProps) {
  const [images, setImages] = useState(false);
  const [messageImages, setMessageImages] = useState(true);
  const [chosen, setChosen] = useState<string[]>([]);
  const [audience, setAudience] = useState<Share["audience"]>("members");
  const [days, setDays] = useState(30);
  const [made, setMade] = useState<Share>();
  const [error, setError] = useState<unknown>();
  const what = { images, message_images: messageImages, files: chosen };
  const preview = useLoad(
    (signal) =>
      got(api.GET("/api/v1/sessions/{session}/share", { params: { path: { session }, query: what }, signal })),
    [session, images, messageImages, chosen],
  );
  const files = useLoad(
    (signal) => got(api.GET("/api/v1/sessions/{session}/files", { params: { path: { session } }, signal })),
    [session],
  );
  const shares = useShares("me");
  const own = shares.data?.filter((s) => s.session === session) ?? [];
  const ready = preview.data && !preview.busy && !preview.error && !preview.data.refused ? preview.data : undefined;
  const lifetime = Math.min(days, preview.data?.max_days ?? days);
  const share = async () => {
    setError(undefined);
    try {
      const body = { digest: ready!.digest, ...what, audience, days: lifetime };
      setMade(await got(api.POST("/api/v1/sessions/{session}/share", { params: { path: { session } }, body })));
      await shares.again();
    } catch (refused) {
      setError(refused); // shown here, because the page behind a dialog cannot be read
      if (refused instanceof Refusal && refused.problem.code === "preview_changed") void preview.again();
    }
  };
  return (
    <Dialog
      title={msg("share.title")}
      wide
      onClose={onClose}
      actions={
        made ? (
          <Button look="primary" onClick={onClose}>
            {msg("share.done")}
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{msg("ui.cancel")}</Button>
            <ActionButton look="primary" act={share} disabled={!ready}>
              {msg("share.share")}
            </ActionButton>
          </>
        )
      }
    >
      {made ? (
        <Made share={made} />
      ) : (
        <>
          <p>{msg("share.lead", { title })}</p>
          {error !== undefined && <Problem error={error} />}
          <Shown asked={preview} waiting={msg("share.preparing")}>
            {(p) => (
              <>
                <div class="settings-form stack">
                  {p.links ? (
                    <SelectField
                      label={msg("share.audience")}
                      value={audience}
                      onText={(a) => setAudience(a as Share["audience"])}
                      options={(["members", "link"] as const).map((a): [string, string] => [a, audienceText(a)])}
                    />
                  ) : (
                    <p class="small muted">{msg("share.membersOnly")}</p>
                  )}
                  <SelectField
                    label={msg("share.lasts")}
                    value={String(lifetime)}
                    onText={(d) => setDays(Number(d))}
                    options={lifetimes(p.max_days).map((d): [string, string] => [
                      String(d),
                      msg("share.days", { count: d }),
                    ])}
                  />
                  {p.images > 0 && (
                    <Check
                      label={msg("share.images", { count: p.images })}
                      hint={msg("share.imagesHint")}
                      checked={images}
                      onCheck={setImages}
                    />
                  )}
                  {p.message_images > 0 && (
                    <Check
                      label={msg("share.messageImages", { count: p.message_images })}
                      hint={
                        p.omitted_images
                          ? msg("share.omittedImages", { count: p.omitted_images })
                          : msg("share.messageImagesHint")
                      }
                      checked={messageImages}
                      onCheck={setMessageImages}
                    />
                  )}
                  {files.data && files.data.items.length > 0 && (
                    <ChosenFiles files={files.data.items} chosen={chosen} onChoose={setChosen} />
                  )}
                </div>
                <Redacted counts={p.redacted} />
                {p.unchecked && <Unchecked secrets={p.unchecked} refused={p.refused === true} />}
                {p.addresses && <Addresses addresses={p.addresses} more={p.more_addresses ?? 0} />}
                <section class="stack tight">
                  <h3>{msg("share.preview")}</h3>
                  <p class="small muted">{msg("share.previewHint")}</p>
                  <div class="share-preview" tabIndex={0} role="region" aria-label={msg("share.preview")}>
                    <p>
                      <strong>{p.content.title || msg("share.untitled")}</strong>
                    </p>
                    <SharedView
                      content={p.content}
                      level={3}
                      imageAddress={(ref) => `/api/v1/sessions/${session}/images/${ref}`}
                    />
                  </div>
                </section>
              </>
            )}
          </Shown>
          {own.length > 0 && (
            <section class="stack tight">
              <h3>{msg("share.existing")}</h3>
              <ShareTable shares={own} load={shares} />
            </section>
          )}
        </>
      )}
    </Dialog>
  );
}

/** lifetimes returns the lifetimes to choose from, in days. */
const lifetimes = (most: number) => [...new Set([1, 7, 30, 90, most])].filter((d) => d <= most).sort((a, b) => a - b);

/** Redacted says how many secrets were replaced. */
function Redacted({ counts: { stored, recognized } }: { counts: Schema["Redacted"] }) {
  if (stored + recognized === 0) return <div class="note">{msg("share.noSecrets")}</div>;
  return (
    <div class="note warn" role="status">
      <strong>{msg("share.redacted", { count: stored + recognized })}</strong>
      <div>{msg("share.redactedText", { stored, recognized })}</div>
    </div>
  );
}

interface ChosenFilesProps {
  files: Schema["ChatFile"][];
  chosen: string[];
  onChoose: (paths: string[]) => void;
}

/** ChosenFiles chooses the files to share, none at first. */
function ChosenFiles({ files, chosen, onChoose }: ChosenFilesProps) {
  const choose = (path: string, on: boolean) =>
    onChoose(files.map((f) => f.path).filter((p) => (p === path ? on : chosen.includes(p))));
  return (
    <fieldset class="share-files stack tight">
      <legend>{msg("share.files")}</legend>
      <p class="small muted">{msg("share.filesHint")}</p>
      <div class="share-list stack tight">
        {files.map((f) => (
          <Check
            key={f.path}
            label={msg("share.file", { path: f.path, size: size(f.size) })}
            checked={chosen.includes(f.path)}
            onCheck={(on) => choose(f.path, on)}
          />
        ))}
      </div>
    </fieldset>
  );
}

/** Unchecked names the stored secrets for which the preview was not searched. */
function Unchecked({ secrets, refused }: { secrets: Schema["ChatUncheckedSecret"][]; refused: boolean }) {
  return (
    <div class={refused ? "note bad" : "note warn"} role={refused ? "alert" : undefined}>
      <strong>{msg(refused ? "share.refused" : "share.unchecked")}</strong>
      <ul>
        {secrets.map((s, i) => (
          <li key={i}>
            {s.name ? <code>{s.name}</code> : msg("share.groupSecret")} {s.used && msg("share.usedSecret")}
          </li>
        ))}
      </ul>
      <div>{msg("share.uncheckedText")}</div>
    </div>
  );
}

/** Addresses lists the addresses behind links and images. */
function Addresses({ addresses, more }: { addresses: string[]; more: number }) {
  return (
    <details class="share-addresses" open={addresses.length <= 10}>
      <summary>{msg("share.addresses", { count: addresses.length + more })}</summary>
      <p class="small muted">{msg("share.addressesHint")}</p>
      <ul class="share-list small" tabIndex={0} aria-label={msg("share.addresses", { count: addresses.length + more })}>
        {addresses.map((a) => (
          <li key={a}>
            <code>{a}</code>
          </li>
        ))}
        {more > 0 && <li>{msg("share.moreAddresses", { count: more })}</li>}
      </ul>
    </details>
  );
}

/** Made shows the address of a new share. */
function Made({ share }: { share: Share }) {
  const address = addressOf(share);
  return (
    <>
      <p role="status">{msg(share.audience === "link" ? "share.madeLink" : "share.made")}</p>
      <div class="row">
        <input
          class="input share-link"
          readOnly
          value={address}
          aria-label={msg("share.link")}
          onFocus={(e) => e.currentTarget.select()}
        />
        <Copy text={address} label={msg("share.copyLink")} />
      </div>
      <p class="small muted">{msg("share.madeText", { time: formatTime(share.expires) })}</p>
    </>
  );
}

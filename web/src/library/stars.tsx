import { useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { me } from "../api/me";
import { ActionButton, AreaField, Button, Dialog, done, Icon } from "../ui";
import { d } from "./words-detail";
import { w } from "./words";

interface StarsProps {
  skill: Schema["SkillDetail"];
  again: () => Promise<void>;
}

/** The ratings of a skill, and one's own to give. */
export function Stars({ skill, again }: StarsProps) {
  const [open, setOpen] = useState(false);
  const text = skill.rating ? w().rated(skill.rating.stars, skill.rating.count) : d().rateFirst;
  return (
    <>
      <button type="button" class="button quiet small" onClick={() => setOpen(true)} title={d().rate}>
        <Icon name="star" size={16} />{text}
      </button>
      {open && <Rate skill={skill} again={again} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Asks what somebody thinks of a skill. */
function Rate({ skill, again, onClose }: StarsProps & { onClose: () => void }) {
  const path = { skill: skill.id };
  const mine = useAsked(async (signal) => {
    const all = await got(api.GET("/api/v1/skills/{skill}/ratings", { signal, params: { path, query: { limit: 500 } } }));
    const own = all.items.find((r) => r.user === me.value?.user.id);
    if (own) (setStars(own.stars), setText(own.words));
    return own;
  }, []);
  const [stars, setStars] = useState(0);
  const [text, setText] = useState("");
  const finish = (said: string) => async () => {
    onClose();
    done(said);
    await again();
  };
  const save = () => got(api.PUT("/api/v1/skills/{skill}/rating", { params: { path }, body: { stars, words: text } })).then(finish(d().ratedNow));
  const remove = () => got(api.DELETE("/api/v1/skills/{skill}/rating", { params: { path } })).then(finish(d().unrated));
  const actions = (
    <>
      {mine.data && <ActionButton look="danger" act={remove}>{d().unrate}</ActionButton>}
      <Button onClick={onClose}>{d().cancel}</Button>
      <ActionButton look="primary" act={save} disabled={!stars}>{d().saveRating}</ActionButton>
    </>
  );
  return (
    <Dialog title={d().rateTitle} onClose={onClose} actions={actions}>
      <fieldset class="library-stars">
        <legend>{d().stars}</legend>
        {[1, 2, 3, 4, 5].map((n) => (
          <label key={n} class={n <= stars ? "on" : ""}>
            <input type="radio" name="stars" checked={n === stars} onChange={() => setStars(n)} />
            <Icon name="star" size={28} />
            <span class="visually-hidden">{d().nStars(n)}</span>
          </label>
        ))}
      </fieldset>
      <AreaField label={d().why} hint={d().whyHint} value={text} onText={setText} maxLength={8000} />
      {mine.error && <p class="small muted">{mine.error.message}</p>}
    </Dialog>
  );
}

import { useState } from "preact/hooks";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, AreaField, Button, Dialog, done, Icon } from "../../shared/ui";
import { ratingText } from "./phrases";

interface StarsProps {
  skill: Schema["SkillDetail"];
  again: () => Promise<void>;
}

/** Stars shows the rating of a skill and lets the user rate it. */
export function Stars({ skill, again }: StarsProps) {
  const [open, setOpen] = useState(false);
  const text = skill.rating ? ratingText(skill.rating.stars, skill.rating.count) : msg("skill.rateFirst");
  return (
    <>
      <button type="button" class="button quiet small" onClick={() => setOpen(true)} title={msg("skill.rate")}>
        <Icon name="star" size={16} />
        {text}
      </button>
      {open && <Rate skill={skill} again={again} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Rate asks the user for a rating. */
function Rate({ skill, again, onClose }: StarsProps & { onClose: () => void }) {
  const path = { skill: skill.id };
  const mine = useLoad(async (signal) => {
    const all = await got(
      api.GET("/api/v1/skills/{skill}/ratings", { signal, params: { path, query: { limit: 500 } } }),
    );
    const own = all.items.find((r) => r.user === me.value?.user.id);
    if (own) {
      setStars(own.stars);
      setText(own.words);
    }
    return own;
  }, []);
  const [stars, setStars] = useState(0);
  const [text, setText] = useState("");
  const finish = (message: string) => async () => {
    onClose();
    done(message);
    await again();
  };
  const save = () =>
    got(api.PUT("/api/v1/skills/{skill}/rating", { params: { path }, body: { stars, words: text } })).then(
      finish(msg("skill.ratedNow")),
    );
  const remove = () =>
    got(api.DELETE("/api/v1/skills/{skill}/rating", { params: { path } })).then(finish(msg("skill.unrated")));
  const actions = (
    <>
      {mine.data && (
        <ActionButton look="danger" act={remove}>
          {msg("skill.unrate")}
        </ActionButton>
      )}
      <Button onClick={onClose}>{msg("skill.cancel")}</Button>
      <ActionButton look="primary" act={save} disabled={!stars}>
        {msg("skill.saveRating")}
      </ActionButton>
    </>
  );
  return (
    <Dialog title={msg("skill.rateTitle")} onClose={onClose} actions={actions}>
      <fieldset class="library-stars">
        <legend>{msg("skill.stars")}</legend>
        {[1, 2, 3, 4, 5].map((n) => (
          <label key={n} class={n <= stars ? "on" : ""}>
            <input type="radio" name="stars" checked={n === stars} onChange={() => setStars(n)} />
            <Icon name="star" size={28} />
            <span class="visually-hidden">{msg("skill.nStars", { n })}</span>
          </label>
        ))}
      </fieldset>
      <AreaField label={msg("skill.why")} hint={msg("skill.whyHint")} value={text} onText={setText} maxLength={8000} />
      {mine.error && <p class="small muted">{mine.error.message}</p>}
    </Dialog>
  );
}

package store

import (
	"context"
	"fmt"
	"time"
)

// Rating is a user's rating of a skill.
type Rating struct {
	SkillID string    `json:"-"`
	UserID  string    `json:"user" doc:"ID of the user"`
	Stars   int64     `json:"stars" minimum:"1" maximum:"5"`
	Review  string    `json:"words"`
	Updated time.Time `json:"updated"`
}

const ratingColumns = "skill_id, user_id, stars, review, updated"

func (r *Rating) fields() []any {
	return []any{&r.SkillID, &r.UserID, &r.Stars, &r.Review, (*timestamp)(&r.Updated)}
}

// Score is the total of a skill's ratings.
type Score struct {
	SkillID string
	Count   int64
	Stars   int64 // the sum over all ratings
}

func (s *Score) fields() []any { return []any{&s.SkillID, &s.Count, &s.Stars} }

// Ratings stores skill ratings.
type Ratings struct{ c conn }

// Put stores a rating, replacing any previous rating by the same user. It fails
// with [ErrNotFound] if the skill or the user does not exist.
func (t Ratings) Put(ctx context.Context, r Rating) error {
	r.Updated = now()
	_, err := t.c.exec(ctx, "INSERT INTO ratings ("+ratingColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (skill_id, user_id) DO UPDATE SET stars = excluded.stars, review = excluded.review, updated = excluded.updated`, r.fields()...)
	if err != nil {
		return fmt.Errorf("rate skill %q: %w", r.SkillID, toNotFound(err))
	}
	return nil
}

// List returns a skill's ratings, sorted by user id, and the cursor of the next
// page.
func (t Ratings) List(ctx context.Context, skillID string, p Page) ([]Rating, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list ratings of skill %q: %w", skillID, err)
	}
	found, err := queryAll[Rating](ctx, t.c, "SELECT "+ratingColumns+" FROM ratings WHERE skill_id = $1 AND user_id > $2 ORDER BY user_id LIMIT $3", skillID, keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list ratings of skill %q: %w", skillID, err)
	}
	found, next := cutPage(p, found, func(r Rating) []string { return []string{r.UserID} })
	return found, next, nil
}

// Scores returns the scores of up to [MaxPage] skills, keyed by skill id. It
// omits skills without ratings.
func (t Ratings) Scores(ctx context.Context, skillIDs []string) (map[string]Score, error) {
	if len(skillIDs) > MaxPage {
		return nil, fmt.Errorf("sum ratings: %w: %d skills, limit %d", ErrInvalid, len(skillIDs), MaxPage)
	}
	out := make(map[string]Score, len(skillIDs))
	if len(skillIDs) == 0 {
		return out, nil
	}
	return t.scores(ctx, out, "WHERE skill_id IN ("+placeholders(1, len(skillIDs))+")", toArgs(skillIDs)...)
}

// All returns the scores of all skills with ratings, keyed by skill id.
func (t Ratings) All(ctx context.Context) (map[string]Score, error) {
	return t.scores(ctx, map[string]Score{}, "")
}

func (t Ratings) scores(ctx context.Context, out map[string]Score, where string, args ...any) (map[string]Score, error) {
	found, err := queryAll[Score](ctx, t.c, "SELECT skill_id, count(*), CAST(sum(stars) AS BIGINT) FROM ratings "+where+" GROUP BY skill_id", args...)
	if err != nil {
		return nil, fmt.Errorf("sum ratings: %w", err)
	}
	for _, s := range found {
		out[s.SkillID] = s
	}
	return out, nil
}

// Delete deletes a rating.
func (t Ratings) Delete(ctx context.Context, skillID, userID string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM ratings WHERE skill_id = $1 AND user_id = $2", skillID, userID); err != nil {
		return fmt.Errorf("delete rating of skill %q: %w", skillID, err)
	}
	return nil
}

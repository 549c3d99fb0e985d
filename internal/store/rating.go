package store

import (
	"context"
	"fmt"
	"time"
)

// Rating is what a user thinks of a skill.
type Rating struct {
	SkillID string
	UserID  string
	Stars   int64 // 1 to 5
	Review  string
	Updated time.Time
}

const ratingColumns = "skill_id, user_id, stars, review, updated"

func (r *Rating) fields() []any {
	return []any{&r.SkillID, &r.UserID, &r.Stars, &r.Review, (*stamp)(&r.Updated)}
}

// Score is the ratings of a skill together.
type Score struct {
	SkillID string
	Count   int64
	Stars   int64 // of all of them together
}

func (s *Score) fields() []any { return []any{&s.SkillID, &s.Count, &s.Stars} }

// Ratings keeps what users think of skills.
type Ratings struct{ c conn }

// Put keeps a rating in place of the one that the user gave before. A skill or a user
// that is not there is [ErrNotFound].
func (t Ratings) Put(ctx context.Context, r Rating) error {
	r.Updated = now()
	_, err := t.c.exec(ctx, "INSERT INTO ratings ("+ratingColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (skill_id, user_id) DO UPDATE SET stars = excluded.stars, review = excluded.review, updated = excluded.updated`, r.fields()...)
	if err != nil {
		return fmt.Errorf("rate skill %q: %w", r.SkillID, parentless(err))
	}
	return nil
}

// List returns the ratings of a skill by the id of the user, and how to ask for more.
func (t Ratings) List(ctx context.Context, skillID string, p Page) ([]Rating, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("ratings of skill %q: %w", skillID, err)
	}
	found, err := all[Rating](ctx, t.c, "SELECT "+ratingColumns+" FROM ratings WHERE skill_id = $1 AND user_id > $2 ORDER BY user_id LIMIT $3", skillID, keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("ratings of skill %q: %w", skillID, err)
	}
	found, next := cut(p, found, func(r Rating) []string { return []string{r.UserID} })
	return found, next, nil
}

// Scores returns the ratings of skills, at most [MaxPage], each together; those
// without are left out.
func (t Ratings) Scores(ctx context.Context, skillIDs []string) (map[string]Score, error) {
	if len(skillIDs) > MaxPage {
		return nil, fmt.Errorf("scores: %w: %d skills, more than %d", ErrInvalid, len(skillIDs), MaxPage)
	}
	out := make(map[string]Score, len(skillIDs))
	if len(skillIDs) == 0 {
		return out, nil
	}
	found, err := all[Score](ctx, t.c, "SELECT skill_id, count(*), CAST(sum(stars) AS BIGINT) FROM ratings WHERE skill_id IN ("+places(1, len(skillIDs))+") GROUP BY skill_id", anys(skillIDs)...)
	if err != nil {
		return nil, fmt.Errorf("scores: %w", err)
	}
	for _, s := range found {
		out[s.SkillID] = s
	}
	return out, nil
}

// Delete takes a rating back.
func (t Ratings) Delete(ctx context.Context, skillID, userID string) error {
	if err := t.c.mustChange(ctx, "DELETE FROM ratings WHERE skill_id = $1 AND user_id = $2", skillID, userID); err != nil {
		return fmt.Errorf("take back the rating of skill %q: %w", skillID, err)
	}
	return nil
}

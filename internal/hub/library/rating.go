package library

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Rating is what a user thinks of a skill.
type Rating = store.Rating

// Score is the ratings of a skill together.
type Score = store.Score

// Rate keeps what the principal thinks of a skill that is not his own, in place of what
// he thought before: 1 to 5 stars, and at most 8 KiB of words.
func (l *Library) Rate(ctx context.Context, p account.Principal, id string, stars int, words string) error {
	if stars < 1 || stars > 5 {
		return invalidf("a rating has 1 to 5 stars")
	}
	if len(words) > maxTextBytes {
		return invalidf("the review has more than %d bytes", maxTextBytes)
	}
	return l.update(ctx, p, account.SkillRate, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		r := store.Rating{SkillID: id, UserID: string(p.User), Stars: int64(stars), Review: words}
		return ratingDetails{h.Name, stars}, tx.Ratings.Put(ctx, r)
	})
}

type ratingDetails struct {
	Name  string `json:"name"`
	Stars int    `json:"stars"` // 0 where the rating was taken back
}

// RemoveRating takes the principal's rating back. One that is not there is [ErrNotFound].
func (l *Library) RemoveRating(ctx context.Context, p account.Principal, id string) error {
	return l.update(ctx, p, account.SkillRate, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		return ratingDetails{Name: h.Name}, tx.Ratings.Delete(ctx, id, string(p.User))
	})
}

// Ratings returns the ratings of a skill, and how to ask for more.
func (l *Library) Ratings(ctx context.Context, p account.Principal, id string, page store.Page) ([]Rating, string, error) {
	if _, err := l.authorize(ctx, p, account.SkillRead, id); err != nil {
		return nil, "", err
	}
	return l.db.Ratings.List(ctx, id, page)
}

// Scores returns the ratings of skills that the principal sees, at most
// [store.MaxPage], each together. Those without are left out.
func (l *Library) Scores(ctx context.Context, p account.Principal, ids []string) (map[string]Score, error) {
	seen, err := l.filterAllowed(ctx, p, account.SkillRead, ids)
	if err != nil {
		return nil, err
	}
	return l.db.Ratings.Scores(ctx, seen)
}

// addScores adds the scores of skills that somebody sees.
func (l *Library) addScores(ctx context.Context, skills []*Skill) error {
	ids := make([]string, len(skills))
	for i, s := range skills {
		ids[i] = s.ID
	}
	scores, err := l.db.Ratings.Scores(ctx, ids)
	if err != nil {
		return err
	}
	for _, s := range skills {
		if score, ok := scores[s.ID]; ok {
			s.Score = &score
		}
	}
	return nil
}

// filterAllowed are those of some skills on which the principal may do an action.
func (l *Library) filterAllowed(ctx context.Context, p account.Principal, a account.Action, ids []string) ([]string, error) {
	if len(ids) > store.MaxPage {
		return nil, fmt.Errorf("%w: %d skills, more than %d", ErrInvalid, len(ids), store.MaxPage)
	}
	var out []string
	for _, id := range ids {
		switch _, err := l.authorize(ctx, p, a, id); {
		case err == nil:
			out = append(out, id)
		case !isNotFound(err) && !isDenied(err):
			return nil, err
		}
	}
	return out, nil
}

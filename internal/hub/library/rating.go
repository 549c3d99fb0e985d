package library

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Rating is a user's rating of a skill.
type Rating = store.Rating

// Score summarizes the ratings of a skill.
type Score struct {
	Count int64   `json:"count"`
	Stars float64 `json:"stars" doc:"Mean, of 5"`
}

func newScore(s store.Score) *Score {
	return &Score{Count: s.Count, Stars: float64(s.Stars) / float64(s.Count)}
}

// Rate sets the principal's rating of a skill: 1 to 5 stars and a review of up
// to 8 KiB. Users cannot rate their own skills.
func (l *Library) Rate(ctx context.Context, p account.Principal, id string, stars int, review string) error {
	if stars < 1 || stars > 5 {
		return invalidf("invalid rating (%d stars, want 1 to 5)", stars)
	}
	if len(review) > maxTextBytes {
		return invalidf("review text too long (%d bytes, limit %d)", len(review), maxTextBytes)
	}
	return l.update(ctx, p, account.SkillRate, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		r := store.Rating{SkillID: id, UserID: string(p.User), Stars: int64(stars), Review: review}
		return ratingDetails{h.Name, stars}, tx.Ratings.Put(ctx, r)
	})
}

// ratingDetails holds the details of the audit record for a rating.
type ratingDetails struct {
	Name  string `json:"name"`
	Stars int    `json:"stars"` // 0 if the rating was removed
}

// RemoveRating removes the principal's rating of a skill. It returns
// [ErrNotFound] if there is none.
func (l *Library) RemoveRating(ctx context.Context, p account.Principal, id string) error {
	return l.update(ctx, p, account.SkillRate, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		return ratingDetails{Name: h.Name}, tx.Ratings.Delete(ctx, id, string(p.User))
	})
}

// Ratings returns the ratings of a skill and the cursor of the next page.
func (l *Library) Ratings(ctx context.Context, p account.Principal, id string, page store.Page) ([]Rating, string, error) {
	if _, err := l.authorize(ctx, p, account.SkillRead, id); err != nil {
		return nil, "", err
	}
	ratings, next, err := l.db.Ratings.List(ctx, id, page)
	for i := range ratings {
		ratings[i].Review = untrusted.New(ratings[i].Review).ForPage()
	}
	return ratings, next, err
}

// Score returns the score of a visible skill, or nil if it has no ratings.
func (l *Library) Score(ctx context.Context, p account.Principal, id string) (*Score, error) {
	if _, err := l.authorize(ctx, p, account.SkillRead, id); err != nil {
		return nil, err
	}
	scores, err := l.db.Ratings.Scores(ctx, []string{id})
	if score, ok := scores[id]; ok {
		return newScore(score), err
	}
	return nil, err
}

// addScores sets the Score field of skills that have ratings.
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
			s.Rating = newScore(score)
		}
	}
	return nil
}

// filterAllowed returns the IDs of the skills on which the principal may perform
// the action.
func (l *Library) filterAllowed(ctx context.Context, p account.Principal, a account.Action, ids []string) ([]string, error) {
	if len(ids) > store.MaxPage {
		return nil, fmt.Errorf("%w: too many skills (%d, limit %d)", ErrInvalid, len(ids), store.MaxPage)
	}
	var out []string
	for _, id := range ids {
		switch _, err := l.authorize(ctx, p, a, id); {
		case err == nil:
			out = append(out, id)
		case !isNotFound(err) && !account.IsDenied(err):
			return nil, err
		}
	}
	return out, nil
}

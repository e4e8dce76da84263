package control

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"understudy/internal/config"
)

// ErrFileChanged refuses an edit of a file that is no longer the one that was shown:
// somebody else has changed it meanwhile.
var ErrFileChanged = errors.New("the file has changed since it was read, and nothing was written: look at it again")

// ConfigFile is the configuration file as people may see and edit it.
type ConfigFile struct {
	Path   string `json:"path"`
	Format string `json:"format"` // yaml, toml
	// Text is the file with a mask in place of every secret, with LF line ends.
	Text string `json:"text"`
	// Masks are the masks in Text, each once. One may be moved and copied; it
	// stands for the same secret wherever a secret may stand.
	Masks []string `json:"masks"`
	// Hash stands for the file's bytes: an edit of Text names it.
	Hash string `json:"hash"`
	// InForce says that these bytes are the ones that are served.
	InForce  bool          `json:"in_force"`
	Problems []FileProblem `json:"problems"`
}

// FileProblem is one thing that is wrong with a file or with an edit of it.
type FileProblem struct {
	Severity string `json:"severity"` // error, warning
	// Line and Column count from 1 in the text with masks, the column in
	// characters; both are 0 where the file as a whole is meant.
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Path   string `json:"path"` // "virtual_models.auto[0].base_url", lists from 0
	What   string `json:"what"`
	Cure   string `json:"cure"`
}

// Mistakes is the error of an edit that gives no usable configuration.
type Mistakes []FileProblem

// Error lists them by line.
func (m Mistakes) Error() string {
	var lines []string
	for _, p := range m {
		if p.Severity != config.Error.String() {
			continue
		}
		text := p.What
		if p.Line > 0 {
			text = fmt.Sprintf("line %d: %s", p.Line, text)
		}
		if p.Cure != "" {
			text += ": " + p.Cure
		}
		lines = append(lines, text)
	}
	return "nothing was written, because the file would not be valid:\n" + strings.Join(lines, "\n")
}

// ConfigFile reads the file as it stands on disk, whether or not it is valid.
func (c *Control) ConfigFile() (ConfigFile, error) {
	src, masked, err := c.readMasked()
	if err != nil {
		return ConfigFile{}, err
	}
	b := c.builder()
	_, problems := config.Parse(src)
	f := ConfigFile{
		Path: b.name(src.Path), Format: src.Format.String(), Text: masked.Text, Masks: masked.Masks(),
		Hash: hex.EncodeToString(src.Hash[:]), InForce: src.Hash == b.s.Config.Source.Hash, Problems: []FileProblem{},
	}
	if f.Masks == nil {
		f.Masks = []string{}
	}
	for _, p := range problems {
		f.Problems = append(f.Problems, b.problem(masked.Shown(p)))
	}
	return f, nil
}

func (c *Control) readMasked() (config.Source, config.Masked, error) {
	src, err := config.Read(c.deps.Status().Path)
	if err != nil {
		return src, config.Masked{}, err
	}
	masked, err := src.Masked()
	if err != nil {
		err = fmt.Errorf("%w: edit %s by hand", err, c.builder().name(src.Path))
	}
	return src, masked, err
}

// CheckConfig says what is wrong with an edited text of the file whose hash is given,
// and writes nothing. It returns ErrFileChanged where the file is another by now.
func (c *Control) CheckConfig(hash, text string) ([]FileProblem, error) {
	src, masked, err := c.readMasked()
	if err != nil {
		return nil, err
	}
	if hash != hex.EncodeToString(src.Hash[:]) {
		return nil, ErrFileChanged
	}
	_, problems, _ := c.builder().restore(masked, text)
	return problems, nil
}

// Written is what became of a file that was written.
type Written struct {
	Hash string `json:"hash"` // of what stands on disk now
	// NeedsRestart are the settings that take effect only after a restart.
	NeedsRestart []string `json:"needs_restart"`
	// Problems are warnings.
	Problems []FileProblem `json:"problems"`
}

// WriteConfig puts an edited text in the place of the file whose hash is given: its
// secrets are put back, it is checked whole, written in one step and applied. A text
// with Mistakes changes nothing, nor does one whose file is another by now
// (ErrFileChanged).
func (c *Control) WriteConfig(ctx context.Context, who, hash, text string) (Written, error) {
	b := c.builder()
	w := Written{NeedsRestart: []string{}}
	before, after := 0, 0
	restart, err := c.deps.Edit(ctx, who, func(src config.Source) (config.Source, error) {
		if hash != hex.EncodeToString(src.Hash[:]) {
			return src, ErrFileChanged
		}
		masked, err := src.Masked()
		if err != nil {
			return src, err
		}
		edited, problems, ok := b.restore(masked, text)
		if !ok {
			return src, Mistakes(problems)
		}
		sum := edited.Written().Hash
		w.Hash, w.Problems = hex.EncodeToString(sum[:]), problems
		before, after = strings.Count(string(src.Bytes), "\n"), strings.Count(string(edited.Bytes), "\n")
		return edited, nil
	})
	switch {
	case errors.Is(err, config.ErrChanged):
		return Written{}, ErrFileChanged
	case err != nil:
		return Written{}, err
	}
	for _, key := range restart {
		w.NeedsRestart = append(w.NeedsRestart, b.name(key))
	}
	c.logChange(who, "config", fmt.Sprintf("the file was edited: %d lines, were %d", after, before))
	return w, nil
}

// restore puts the secrets back into an edited text and checks it whole. Its places
// are those of the text; ok says that there are no errors.
func (b *builder) restore(masked config.Masked, text string) (src config.Source, problems []FileProblem, ok bool) {
	problems, ok = []FileProblem{}, true
	restored := masked.Restore(text)
	_, found := config.Parse(restored.Source)
	for _, p := range found {
		problems = append(problems, b.problem(restored.Shown(p)))
		ok = ok && p.Severity != config.Error
	}
	if ok {
		// In a file that cannot be read masks may seem to stand anywhere.
		for _, p := range restored.Problems {
			problems, ok = append(problems, b.problem(p)), false
		}
	}
	return restored.Source, problems, ok
}

func (b *builder) problem(p config.Problem) FileProblem {
	return FileProblem{Severity: p.Severity.String(), Line: p.Line, Column: p.Column, Path: b.prose(p.Path), What: b.prose(p.What), Cure: b.prose(p.Cure)}
}

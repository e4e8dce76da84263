package handover

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
)

// Kind says what a message is.
type Kind string

// The messages, in the order in which an upgrade that goes well has them. Only
// Prepared, Serving, Failed and Ending come from the heir.
const (
	// Prepared: the heir's configuration is good and its listeners are open.
	Prepared Kind = "prepared"
	// Take: the former process writes nothing any more; what it wrote is the heir's.
	Take Kind = "take"
	// Serving: the heir has everything and accepts connections.
	Serving Kind = "serving"
	// Failed: the heir gives up; the body is the reason, a text.
	Failed Kind = "failed"
	// News: what has happened at the former process since.
	News Kind = "news"
	// Ending: the heir is to end itself, and waits only so long for the former one;
	// the body is the time in seconds.
	Ending Kind = "ending"
	// Done: nothing runs at the former process any more.
	Done Kind = "done"
)

// Message is one message. Unknown kinds and fields are another version's: they are
// passed over.
type Message struct {
	Kind Kind            `json:"kind"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Read decodes the body.
func (m Message) Read(into any) error {
	if err := json.Unmarshal(m.Body, into); err != nil {
		return fmt.Errorf("read a message (%s): %w", m.Kind, err)
	}
	return nil
}

// A Link joins a former process and its heir. Any goroutine may send; one receives.
type Link struct {
	conn    net.Conn
	decoder *json.Decoder

	mu      sync.Mutex // guards encoder
	encoder *json.Encoder
}

func newLink(c net.Conn) *Link {
	return &Link{conn: c, decoder: json.NewDecoder(c), encoder: json.NewEncoder(c)}
}

// Send sends a message; body may be nil. It waits until the system has taken it.
func (l *Link) Send(k Kind, body any) error {
	m := Message{Kind: k}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode a message (%s): %w", k, err)
		}
		m.Body = text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.encoder.Encode(m); err != nil {
		return fmt.Errorf("send a message (%s): %w", k, err)
	}
	return nil
}

// Receive waits for the next message. Its error is io.EOF where the other process has
// closed the link, or has gone.
func (l *Link) Receive() (m Message, err error) {
	err = l.decoder.Decode(&m)
	return m, err
}

// Close closes this end. Whoever receives stops.
func (l *Link) Close() { _ = l.conn.Close() } // what was sent has arrived

package handover

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
)

// variable tells an heir that it is one, and the names of what it has got.
const variable = "UNDERSTUDY_HANDOVER"

// firstFD is the link's descriptor in an heir; the others follow it.
const firstFD = 3

// Inheritance is what a former process has passed on.
type Inheritance struct {
	Link  *Link
	parts []part
}

type part struct {
	Descriptor
	file *os.File
}

// Inherit takes what a former process has passed on to this one; nil where it is no
// heir. It is called once, before anything is opened.
func Inherit() (*Inheritance, error) {
	names, is := os.LookupEnv(variable)
	if !is {
		return nil, nil
	}
	os.Unsetenv(variable)
	var descriptors []Descriptor
	if err := json.Unmarshal([]byte(names), &descriptors); err != nil {
		return nil, fmt.Errorf("%s is no list of descriptors: it is set by upgrades only: %w", variable, err)
	}
	closeOnExec(firstFD)
	link, err := linkOf(firstFD)
	if err != nil {
		return nil, fmt.Errorf("%s is set, and there is nobody to take over from: %w", variable, err)
	}
	in := &Inheritance{Link: link}
	for i, d := range descriptors {
		fd := firstFD + 1 + i
		closeOnExec(fd)
		in.parts = append(in.parts, part{d, os.NewFile(uintptr(fd), d.Name)})
	}
	return in, nil
}

// Take gives a descriptor that has this name and was opened for this address, or for
// one that nobody here has chosen; nil where there is none. It is the caller's then.
func (in *Inheritance) Take(name, address string) *os.File {
	if in == nil {
		return nil
	}
	for i := range in.parts {
		p := &in.parts[i]
		if p.Name == name && (p.Address == address || p.Address == "") && p.file != nil {
			f := p.file
			p.file = nil
			return f
		}
	}
	return nil
}

// Activated gives the address of a listener that the service manager has opened, for
// the former process or one before it; nil where there is none of that name.
func (in *Inheritance) Activated(name string) (net.Addr, error) {
	if in == nil {
		return nil, nil
	}
	for _, p := range in.parts {
		if p.Name == name && p.Address == "" && p.file != nil {
			l, err := net.FileListener(p.file)
			if err != nil {
				return nil, fmt.Errorf("the %s listener that was passed on: %w", name, err)
			}
			defer l.Close() // a copy
			return l.Addr(), nil
		}
	}
	return nil, nil
}

// Fail tells the former process why this one gives up; nil is no reason.
func (in *Inheritance) Fail(reason error) {
	if in != nil && reason != nil {
		_ = in.Link.Send(Failed, reason.Error()) // it will notice the end by itself
		in.Link.Close()
	}
}

// Part closes the link.
func (in *Inheritance) Part() {
	if in != nil {
		in.Link.Close()
	}
}

// Drop closes what nobody has taken.
func (in *Inheritance) Drop() {
	if in == nil {
		return
	}
	for i := range in.parts {
		if f := in.parts[i].file; f != nil {
			_ = f.Close() // only a listener nobody wants
			in.parts[i].file = nil
		}
	}
}

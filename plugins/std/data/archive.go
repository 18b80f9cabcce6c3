package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

// Bounds of archives.
const (
	maxFiles = 10_000
	maxBytes = 1 << 30 // of all files of an archive together, unpacked
)

// Archive is an archive that is an artifact.
type Archive struct {
	Artifact sdk.Artifact `json:"artifact"`
	Format   string       `json:"format,omitempty"` // "zip", "tar" or "tar.gz"; default: what its bytes say
	Only     []string     `json:"only,omitempty"`   // names of files, or directories with a slash at the end; default: all
}

// File is a file of an archive.
type File struct {
	Name     string       `json:"name"`
	Artifact sdk.Artifact `json:"artifact"`
}

// Extracted is the files of an archive, in its order.
type Extracted struct {
	Files []File `json:"files"`
}

func extract(ctx sdk.Context, in Archive) (Extracted, error) {
	source, err := ctx.OpenArtifact(in.Artifact)
	if err != nil {
		return Extracted{}, err
	}
	defer source.Close()
	x := &extraction{ctx: ctx, only: in.Only, left: maxBytes, Extracted: Extracted{Files: []File{}}}
	head := make([]byte, 4)
	n, err := io.ReadFull(source, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return x.Extracted, err
	}
	whole := io.MultiReader(bytes.NewReader(head[:n]), source)
	switch form := formOf(in.Format, head[:n]); form {
	case "zip":
		err = x.zip(whole)
	case "tar":
		err = x.tar(whole)
	case "tar.gz":
		unpacked, zipped := gzip.NewReader(whole)
		if zipped != nil {
			return x.Extracted, sdk.Fail("archive", "%w", zipped)
		}
		err = x.tar(unpacked)
	default:
		err = sdk.Fail("input", "format is %q, and may be \"zip\", \"tar\" or \"tar.gz\"", form)
	}
	return x.Extracted, err
}

// formOf is the format of an archive that begins so.
func formOf(stated string, head []byte) string {
	switch {
	case stated != "":
		return stated
	case bytes.HasPrefix(head, []byte("PK")):
		return "zip"
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "tar.gz"
	}
	return "tar"
}

// extraction is the work on one archive.
type extraction struct {
	ctx  sdk.Context
	only []string
	left int64
	Extracted
}

// zip reads the whole archive: its table of contents is at the end.
func (x *extraction) zip(source io.Reader) error {
	whole, err := io.ReadAll(source)
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		return sdk.Fail("archive", "%w", err)
	}
	for _, f := range archive.File {
		if !f.Mode().IsRegular() {
			continue // directories, links
		}
		content, err := f.Open()
		if err != nil {
			return sdk.Fail("archive", "%s: %w", f.Name, err)
		}
		if err := x.file(f.Name, content); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) tar(source io.Reader) error {
	archive := tar.NewReader(source)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return sdk.Fail("archive", "%w", err)
		case header.Typeflag != tar.TypeReg:
			continue
		}
		if err := x.file(header.Name, archive); err != nil {
			return err
		}
	}
}

// file stores one file.
func (x *extraction) file(name string, content io.Reader) error {
	name = strings.TrimPrefix(name, "./")
	switch {
	case !fs.ValidPath(name):
		return sdk.Fail("archive", "the file %q would be outside of a directory into which the archive is unpacked", name)
	case !x.wants(name):
		return nil
	case len(x.Files) == maxFiles:
		return sdk.Fail("archive", "the archive has more than %d files: name those that are needed in only", maxFiles)
	}
	bounded := &io.LimitedReader{R: content, N: x.left + 1}
	a, err := write(x.ctx, name, bounded)
	if err != nil {
		return err
	}
	if x.left -= a.Size; x.left < 0 {
		return sdk.Fail("archive", "the files of the archive have more than %d bytes", int64(maxBytes))
	}
	x.Files = append(x.Files, File{name, *a})
	return nil
}

func (x *extraction) wants(name string) bool {
	for _, one := range x.only {
		if name == one || strings.HasSuffix(one, "/") && strings.HasPrefix(name, one) {
			return true
		}
	}
	return len(x.only) == 0
}

// Content is a file for an archive.
type Content struct {
	Name string `json:"name"`
	Source
}

// Contents is the files for an archive.
type Contents struct {
	Files  []Content `json:"files"`
	Format string    `json:"format,omitempty"` // default "zip"
	Store  string    `json:"store,omitempty"`  // name of the artifact; default "archive" with the format
}

func create(ctx sdk.Context, in Contents) (sdk.Artifact, error) {
	if in.Format == "" {
		in.Format = "zip"
	}
	if in.Store == "" {
		in.Store = "archive." + in.Format
	}
	w, err := ctx.Artifact(in.Store)
	if err != nil {
		return sdk.Artifact{}, err
	}
	defer w.Close()
	switch in.Format {
	case "zip":
		err = in.zip(ctx, w)
	case "tar":
		err = in.tar(ctx, w)
	case "tar.gz":
		packed := gzip.NewWriter(w)
		if err = in.tar(ctx, packed); err == nil {
			err = packed.Close()
		}
	default:
		err = sdk.Fail("input", "format is %q, and may be \"zip\", \"tar\" or \"tar.gz\"", in.Format)
	}
	if err != nil {
		return sdk.Artifact{}, err
	}
	return w.Commit()
}

func (in *Contents) zip(ctx sdk.Context, to io.Writer) error {
	archive := zip.NewWriter(to)
	for i := range in.Files {
		if err := in.Files[i].put(ctx, func(name string, _ int64) (io.Writer, error) { return archive.Create(name) }); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (in *Contents) tar(ctx sdk.Context, to io.Writer) error {
	archive := tar.NewWriter(to)
	for i := range in.Files {
		if err := in.Files[i].put(ctx, func(name string, size int64) (io.Writer, error) {
			return archive, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644})
		}); err != nil {
			return err
		}
	}
	return archive.Close()
}

// put writes one file into an archive.
func (c *Content) put(ctx sdk.Context, begin func(name string, size int64) (io.Writer, error)) error {
	if !fs.ValidPath(c.Name) || c.Name == "." {
		return sdk.Fail("input", "%q is not the name of a file in an archive, such as \"data/orders.csv\"", c.Name)
	}
	content, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	size := int64(0)
	if c.Artifact != nil {
		size = c.Artifact.Size
	} else {
		size = int64(len(*c.Text))
	}
	to, err := begin(c.Name, size)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return err
}

"""Small DICOM and NIfTI files, written as scanners and converters write them."""

import io

import numpy as np

CT = "1.2.840.10008.5.1.4.1.1.2"


def dicom_dataset(stored, *, bits_stored=None, high_bit=None, photometric="MONOCHROME2", patient="P1", **elements):
    """A DICOM data set with these stored values.

    Args:
        stored: (rows, columns), (frames, rows, columns) or (rows, columns, 3) integers.
        bits_stored: By default all bits of the type.
        high_bit: By default the one below the stored bits.
        photometric: The photometric interpretation.
        patient: The PatientID; None leaves it out.
        elements: Further elements by keyword.
    """
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = CT
    dataset.SOPInstanceUID = generate_uid(entropy_srcs=["crossgraft", photometric])
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    if patient is not None:
        dataset.PatientID = patient
    colour = stored.shape[-1] == 3
    if stored.ndim == 3 and not colour:
        dataset.NumberOfFrames = len(stored)
    dataset.Modality = "CT"
    dataset.SamplesPerPixel = 3 if colour else 1
    if colour:
        dataset.PlanarConfiguration = 0
    dataset.PhotometricInterpretation = photometric
    dataset.Rows, dataset.Columns = stored.shape[:2] if colour else stored.shape[-2:]
    dataset.BitsAllocated = 8 * stored.dtype.itemsize
    dataset.BitsStored = bits_stored or dataset.BitsAllocated
    dataset.HighBit = dataset.BitsStored - 1 if high_bit is None else high_bit
    dataset.PixelRepresentation = int(stored.dtype.kind == "i")
    dataset.PixelData = stored.astype(stored.dtype.newbyteorder("<")).tobytes()
    dataset["PixelData"].VR = "OB" if dataset.BitsAllocated == 8 else "OW"
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    return dataset


def dicom_bytes(stored, **options):
    """The content of a file of such a data set."""
    buffer = io.BytesIO()
    dicom_dataset(stored, **options).save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def write_dicom(path, stored, **options):
    """Write such a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(dicom_bytes(stored, **options))
    return path


def write_nifti(path, values, *, affine=None, slope=None, intercept=None, cal=None):
    """Write a NIfTI file, with its folders; by default its axes point right, anterior, superior."""
    import nibabel

    path.parent.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine)
    if slope is not None:
        image.header.set_slope_inter(slope, intercept)
    if cal is not None:
        image.header["cal_min"], image.header["cal_max"] = cal
    nibabel.save(image, path)
    return path


def ct_slice(seed, size=32):
    """Made-up Hounsfield units, (size, size) int16: air around a round body with two lungs and a bone."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    values = np.full((size, size), -1000.0)
    values[x**2 + y**2 < 0.8] = 40
    for side in (-0.4, 0.4):
        values[(x - side) ** 2 / 0.06 + y**2 / 0.2 < 1] = -800
    values[x**2 + (y - 0.65) ** 2 < 0.02] = 700
    return (values + rng.normal(0, 15, values.shape)).round().astype(np.int16)


def write_ct(path, hounsfield, *, patient="P1", window=(-600, 1500), **elements):
    """A file as a CT scanner writes it: 12 bits, unsigned, intercept −1024, with a window."""
    if window is not None:
        elements.update(WindowCenter=window[0], WindowWidth=window[1])
    stored = np.clip(hounsfield + 1024, 0, 4095).astype(np.uint16)
    return write_dicom(path, stored, bits_stored=12, patient=patient, RescaleSlope=1, RescaleIntercept=-1024, **elements)
